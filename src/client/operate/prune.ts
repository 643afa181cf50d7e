/**
 * Deletes runs that ended long ago, as whole trees: a parent and its children are deleted together, because the ids of
 * children are computed from the id of the parent. A failed run and its retry are deleted together, too: the retry may refer
 * to children of the failed run, and without its retry, the failed run could be retried a second time.
 *
 * Leaves are deleted first and the root last, so that an interrupted prune leaves a connected tree that the next prune
 * finds. After each batch, `prune` pauses for as long as the batch took, but at most a second, so that it uses only about
 * half of the database's time.
 */

import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { mayBeRetry, retriedRunIdOf, retryIdOf } from "../../core/run/lineage.js";
import { type AnyWorkflow, nameOf } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleepUnlessAborted } from "../../runtime/wait.js";
import type { AgePosition, ChildKey, ChildRun, RootRun, Store } from "../../store/contract/store.js";

/** Options of `pawl.prune`. */
export interface PruneOptions {
  /** How long ago a run and all its descendants must have ended. */
  readonly olderThan: Duration;
  /** Deletes only runs of this workflow, with their children. Default: runs of all workflows. */
  readonly workflow?: AnyWorkflow | string;
  /** Stops after this many runs. It deletes whole trees, so it may delete a few runs more. Default: no limit. */
  readonly limit?: number;
  /** Stops the deletion after the current batch when this signal fires. */
  readonly signal?: AbortSignal;
  /** Deletes nothing and only counts. Default false. */
  readonly dryRun?: boolean;
}

const pruneOptions = new Set<string>([
  "olderThan",
  "workflow",
  "limit",
  "signal",
  "dryRun",
] satisfies (keyof PruneOptions)[]);

/** What `pawl.prune` deleted, or with `dryRun` would delete. */
export interface PruneResult {
  /** The number of runs, including children. */
  readonly runs: number;
  /** The number of trees: a run with its children and retries. */
  readonly trees: number;
}

const rootsPerPage = 200;
const runsPerBatch = 200;
const childrenPerPage = 1_000;
/**
 * The trees of several roots are held in memory together only while they have at most this many runs; otherwise the page
 * of roots is split, and its halves are pruned one after the other. A single tree may have more.
 */
const maxRunsInMemory = 20_000;
const maxPauseMs = 1_000;

export async function prune(store: Store, options: PruneOptions, runtime: Runtime): Promise<PruneResult> {
  checkOptions("prune()", options, pruneOptions);
  const olderThanMs = parseDuration(options.olderThan, "olderThan");
  const limit = checkLimit(options.limit);
  const endedBefore = (await store.now()) - olderThanMs;
  const pruner = new Pruner(
    store,
    { endedBefore, limit, signal: options.signal, isDryRun: options.dryRun === true },
    runtime,
  );
  const workflow = options.workflow === undefined ? null : nameOf(options.workflow);
  for await (const roots of oldRoots(store, endedBefore, workflow)) {
    const endedRoots = roots.filter(({ finishedAt }) => finishedAt !== null && finishedAt < endedBefore);
    await pruner.removeTreesOf(await withoutRetries(store, endedRoots));
    if (pruner.isOver) break;
  }
  return { runs: pruner.runCount, trees: pruner.treeCount };
}

/** Scans by creation time, because runs that ended before an instant were also created before that instant. */
async function* oldRoots(
  store: Store,
  createdBefore: number,
  workflow: string | null,
): AsyncGenerator<readonly RootRun[]> {
  let after: AgePosition | null = null;
  for (;;) {
    const page: readonly RootRun[] = await store.maintenance.rootRuns({
      createdBefore,
      workflow,
      after,
      limit: rootsPerPage,
    });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < rootsPerPage) return;
    after = last;
  }
}

/**
 * Leaves out retries, because a retry is deleted with the tree of the run that it retries. If that run no longer exists, for
 * example because it was deleted by hand, the retry is a root itself.
 */
async function withoutRetries(store: Store, roots: readonly RootRun[]): Promise<readonly RootRun[]> {
  const retries = await store.runsById(roots.map(({ id }) => id).filter(mayBeRetry));
  if (retries.length === 0) return roots;
  const predecessorIdByRetryId = new Map(retries.map((run) => [run.id, retriedRunIdOf(run)]));
  const predecessorIds = [...predecessorIdByRetryId.values()].filter((id) => id !== null);
  const existingIds = new Set((await store.runsById(predecessorIds)).map(({ id }) => id));
  return roots.filter(({ id }) => !existingIds.has(predecessorIdByRetryId.get(id) ?? ""));
}

interface PrunerOptions {
  readonly endedBefore: number;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  readonly isDryRun: boolean;
}

class Pruner {
  runCount = 0;
  treeCount = 0;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #endedBefore: number;
  readonly #limit: number;
  readonly #signal: AbortSignal | undefined;
  readonly #isDryRun: boolean;

  constructor(store: Store, { endedBefore, limit, signal, isDryRun }: PrunerOptions, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
    this.#endedBefore = endedBefore;
    this.#limit = limit;
    this.#signal = signal;
    this.#isDryRun = isDryRun;
  }

  get isOver(): boolean {
    return this.runCount >= this.#limit || this.#signal?.aborted === true;
  }

  async removeTreesOf(roots: readonly RootRun[]): Promise<void> {
    if (roots.length === 0 || this.isOver) return;
    const trees = await this.#collectEndedTrees(roots);
    if (trees === "too many") {
      const half = roots.length >> 1;
      await this.removeTreesOf(roots.slice(0, half));
      return this.removeTreesOf(roots.slice(half));
    }
    await this.#removeAll(trees);
  }

  /** Returns the trees of these roots in which every run ended long enough ago; in each tree, the leaves come first. */
  async #collectEndedTrees(roots: readonly RootRun[]): Promise<readonly (readonly string[])[] | "too many"> {
    const trees = new Map(roots.map(({ id }) => [id, [id]]));
    const rootOf = new Map(roots.map(({ id }) => [id, id]));
    let level: readonly Pick<ChildRun, "id" | "hasFailed">[] = roots;
    while (level.length > 0) {
      const nextLevel: ChildRun[] = [];
      for await (const child of childrenAndRetriesOf(this.#store, level)) {
        const { id, parentId, finishedAt } = child;
        const root = rootOf.get(parentId) as string;
        rootOf.set(id, root);
        nextLevel.push(child);
        if (finishedAt === null || finishedAt >= this.#endedBefore) trees.delete(root);
        else trees.get(root)?.push(id);
        if (rootOf.size > maxRunsInMemory && roots.length > 1) return "too many";
      }
      // A tree with a run that is open or ended recently is not deleted, so its further descendants need not be read.
      level = nextLevel.filter(({ id }) => trees.has(rootOf.get(id) as string));
    }
    return [...trees.values()].map((tree) => tree.reverse());
  }

  async #removeAll(trees: readonly (readonly string[])[]): Promise<void> {
    const runIds: string[] = [];
    for (const tree of trees) {
      if (this.runCount + runIds.length >= this.#limit) break;
      runIds.push(...tree);
    }
    const roots = new Set(trees.map((tree) => tree.at(-1)));
    for (let from = 0; from < runIds.length && this.#signal?.aborted !== true; from += runsPerBatch) {
      const batch = runIds.slice(from, from + runsPerBatch);
      const batchStartedAt = this.#runtime.monotonic();
      this.runCount += this.#isDryRun ? batch.length : await this.#store.maintenance.deleteRuns(batch);
      this.treeCount += batch.filter((id) => roots.has(id)).length;
      if (this.#isDryRun) continue;
      await this.#pauseBetweenBatches(this.#runtime.monotonic() - batchStartedAt);
    }
  }

  /** An abort ends the pause early and does not throw. */
  async #pauseBetweenBatches(ms: number): Promise<void> {
    await sleepUnlessAborted(this.#runtime, Math.min(ms, maxPauseMs), this.#signal);
  }
}

/** Yields the children of these runs, and their retries as if a retry were a child of the run that it retries. */
async function* childrenAndRetriesOf(
  store: Store,
  runs: readonly Pick<ChildRun, "id" | "hasFailed">[],
): AsyncGenerator<ChildRun> {
  yield* childrenOf(
    store,
    runs.map(({ id }) => id),
  );
  const failedIds = runs.filter(({ hasFailed }) => hasFailed).map(({ id }) => id);
  for (let from = 0; from < failedIds.length; from += rootsPerPage) {
    const predecessorByRetryId = new Map(failedIds.slice(from, from + rootsPerPage).map((id) => [retryIdOf(id), id]));
    // `hasFailed` says whether to search for a further retry. A canceled retry may have one, too, so it counts as failed.
    for (const { id, finishedAt, status } of await store.runsById([...predecessorByRetryId.keys()]))
      yield { id, parentId: predecessorByRetryId.get(id) as string, finishedAt, hasFailed: status !== "completed" };
  }
}

async function* childrenOf(store: Store, parentIds: readonly string[]): AsyncGenerator<ChildRun> {
  const sortedParentIds = parentIds.toSorted();
  for (let from = 0; from < sortedParentIds.length; from += rootsPerPage) {
    const parents = sortedParentIds.slice(from, from + rootsPerPage);
    let after: ChildKey | null = null;
    for (;;) {
      const page: readonly ChildRun[] = await store.maintenance.childRuns(parents, { after, limit: childrenPerPage });
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < childrenPerPage) break;
      after = last;
    }
  }
}

function checkLimit(limit: number | undefined): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : checkWholeNumber("prune({ limit })", limit);
}
