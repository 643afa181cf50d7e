/**
 * Deletes runs that ended long ago, as whole trees: a parent and its children belong together, and children's ids are
 * computed from their parent's. A run that was retried and its retry belong together in the same way: the retry may have
 * its results from children of the first, and the first must not be retried again because its retry was forgotten.
 *
 * The leaves go first and the root last. If this is cut short, the rest still hangs together and the next time finds it. It
 * goes in small batches, and rests after each for as long as it took: the database has at least half of its time for others.
 */

import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { mayBeRetry, retriedRunIdOf, retryIdOf } from "../../core/run/lineage.js";
import { type AnyWorkflow, nameOf } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleepUnlessAborted } from "../../runtime/wait.js";
import type { AgePosition, ChildKey, ChildRun, RootRun, Store } from "../../store/contract/store.js";

export interface PruneOptions {
  /** How long ago a run and all its descendants must have ended. */
  readonly olderThan: Duration;
  /** Only trees whose root is of this workflow. */
  readonly workflow?: AnyWorkflow | string;
  /** Stops when so many runs are gone; a tree that was begun is finished. */
  readonly limit?: number;
  /** Stops after the batch that is under way. */
  readonly signal?: AbortSignal;
  /** Deletes nothing, and tells how much it would have deleted. */
  readonly dryRun?: boolean;
}

const pruneOptions = new Set<string>([
  "olderThan",
  "workflow",
  "limit",
  "signal",
  "dryRun",
] satisfies (keyof PruneOptions)[]);

/** What was deleted; with `dryRun`, what would have been. */
export interface PruneResult {
  readonly runs: number;
  readonly trees: number;
}

const rootsPerPage = 200;
const runsPerBatch = 200;
const childrenPerPage = 1_000;
/** Trees are gathered together as long as they are small. */
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
    const old = roots.filter(({ finishedAt }) => finishedAt !== null && finishedAt < endedBefore);
    await pruner.removeTreesOf(await withoutRetries(store, old));
    if (pruner.isOver) break;
  }
  return { runs: pruner.runs, trees: pruner.trees };
}

/** What ended before that instant began before it. */
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

/** A retry goes when the run goes that it was made of; unless that one was removed by hand. */
async function withoutRetries(store: Store, roots: readonly RootRun[]): Promise<readonly RootRun[]> {
  const retries = await store.runsById(roots.map(({ id }) => id).filter(mayBeRetry));
  if (retries.length === 0) return roots;
  const predecessors = new Map(retries.map((run) => [run.id, retriedRunIdOf(run)]));
  const predecessorIds = [...predecessors.values()].filter((id) => id !== null);
  const existing = new Set((await store.runsById(predecessorIds)).map(({ id }) => id));
  return roots.filter(({ id }) => !existing.has(predecessors.get(id) ?? ""));
}

interface PrunerOptions {
  readonly endedBefore: number;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  readonly isDryRun: boolean;
}

class Pruner {
  runs = 0;
  trees = 0;
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
    return this.runs >= this.#limit || this.#signal?.aborted === true;
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

  /** The trees of these roots that have ended as a whole; each with its leaves first. */
  async #collectEndedTrees(roots: readonly RootRun[]): Promise<readonly (readonly string[])[] | "too many"> {
    const trees = new Map(roots.map(({ id }) => [id, [id]]));
    const rootOf = new Map(roots.map(({ id }) => [id, id]));
    let level: readonly Pick<ChildRun, "id" | "hasFailed">[] = roots;
    while (level.length > 0) {
      const next: ChildRun[] = [];
      for await (const child of childrenAndRetriesOf(this.#store, level)) {
        const { id, parentId, finishedAt } = child;
        const root = rootOf.get(parentId) as string;
        rootOf.set(id, root);
        next.push(child);
        if (finishedAt === null || finishedAt >= this.#endedBefore) trees.delete(root);
        else trees.get(root)?.push(id);
        if (rootOf.size > maxRunsInMemory && roots.length > 1) return "too many";
      }
      // What hangs under a tree that stays need not be looked at.
      level = next.filter(({ id }) => trees.has(rootOf.get(id) as string));
    }
    return [...trees.values()].map((tree) => tree.reverse());
  }

  async #removeAll(trees: readonly (readonly string[])[]): Promise<void> {
    const runIds: string[] = [];
    for (const tree of trees) {
      if (this.runs + runIds.length >= this.#limit) break;
      runIds.push(...tree);
    }
    const roots = new Set(trees.map((tree) => tree.at(-1)));
    for (let from = 0; from < runIds.length && this.#signal?.aborted !== true; from += runsPerBatch) {
      const batch = runIds.slice(from, from + runsPerBatch);
      const batchStartedAt = this.#runtime.monotonic();
      this.runs += this.#isDryRun ? batch.length : await this.#store.maintenance.deleteRuns(batch);
      this.trees += batch.filter((id) => roots.has(id)).length;
      if (this.#isDryRun) continue;
      await this.#pauseBetweenBatches(this.#runtime.monotonic() - batchStartedAt);
    }
  }

  /** Being told to stop is a reason to rest no longer, not an error. */
  async #pauseBetweenBatches(ms: number): Promise<void> {
    await sleepUnlessAborted(this.#runtime, Math.min(ms, maxPauseMs), this.#signal);
  }
}

/** Children, and retries as if they were children of the runs that they go on for. */
async function* childrenAndRetriesOf(
  store: Store,
  runs: readonly Pick<ChildRun, "id" | "hasFailed">[],
): AsyncGenerator<ChildRun> {
  yield* childrenOf(
    store,
    runs.map(({ id }) => id),
  );
  const failed = runs.filter(({ hasFailed }) => hasFailed).map(({ id }) => id);
  for (let from = 0; from < failed.length; from += rootsPerPage) {
    const predecessorByRetryId = new Map(failed.slice(from, from + rootsPerPage).map((id) => [retryIdOf(id), id]));
    // One that was canceled may have been retried, too.
    for (const { id, finishedAt, status } of await store.runsById([...predecessorByRetryId.keys()]))
      yield { id, parentId: predecessorByRetryId.get(id) as string, finishedAt, hasFailed: status !== "completed" };
  }
}

async function* childrenOf(store: Store, parentIds: readonly string[]): AsyncGenerator<ChildRun> {
  const sorted = parentIds.toSorted();
  for (let from = 0; from < sorted.length; from += rootsPerPage) {
    const parents = sorted.slice(from, from + rootsPerPage);
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
