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
import { mayBeRetry, predecessorOf, retryIdOf } from "../../core/run/lineage.js";
import { type AnyWorkflow, nameOf } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleepUnlessAborted } from "../../runtime/wait.js";
import type { Age, Child, ChildKey, Root, Store } from "../../store/contract/store.js";

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
export interface Pruned {
  readonly runs: number;
  readonly trees: number;
}

const rootsPerPage = 200;
const runsPerBatch = 200;
const childrenPerPage = 1_000;
/** Trees are gathered together as long as they are small. */
const runsInMemory = 20_000;
const longestRestMs = 1_000;

export async function prune(store: Store, options: PruneOptions, runtime: Runtime): Promise<Pruned> {
  checkOptions("prune()", options, pruneOptions);
  const olderThanMs = parseDuration(options.olderThan, "olderThan");
  const limit = checkLimit(options.limit);
  const endedBefore = (await store.now()) - olderThanMs;
  const pruning = new Pruning(
    store,
    { endedBefore, limit, signal: options.signal, isDry: options.dryRun === true },
    runtime,
  );
  const workflow = options.workflow === undefined ? null : nameOf(options.workflow);
  for await (const roots of oldRoots(store, endedBefore, workflow)) {
    const old = roots.filter(({ finishedAt }) => finishedAt !== null && finishedAt < endedBefore);
    await pruning.removeTreesOf(await withoutRetries(store, old));
    if (pruning.isOver) break;
  }
  return { runs: pruning.runs, trees: pruning.trees };
}

/** What ended before that instant began before it. */
async function* oldRoots(store: Store, bornBefore: number, workflow: string | null): AsyncGenerator<readonly Root[]> {
  let after: Age | null = null;
  for (;;) {
    const page: readonly Root[] = await store.upkeep.roots({ bornBefore, workflow, after, limit: rootsPerPage });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < rootsPerPage) return;
    after = last;
  }
}

/** A retry goes when the run goes that it was made of; unless that one was removed by hand. */
async function withoutRetries(store: Store, roots: readonly Root[]): Promise<readonly Root[]> {
  const retries = await store.runsById(roots.map(({ id }) => id).filter(mayBeRetry));
  if (retries.length === 0) return roots;
  const origins = new Map(retries.map((run) => [run.id, predecessorOf(run)]));
  const known = [...origins.values()].filter((id) => id !== null);
  const existing = new Set((await store.runsById(known)).map(({ id }) => id));
  return roots.filter(({ id }) => !existing.has(origins.get(id) ?? ""));
}

interface PruningOptions {
  readonly endedBefore: number;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  readonly isDry: boolean;
}

class Pruning {
  runs = 0;
  trees = 0;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #endedBefore: number;
  readonly #limit: number;
  readonly #signal: AbortSignal | undefined;
  readonly #isDry: boolean;

  constructor(store: Store, { endedBefore, limit, signal, isDry }: PruningOptions, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
    this.#endedBefore = endedBefore;
    this.#limit = limit;
    this.#signal = signal;
    this.#isDry = isDry;
  }

  get isOver(): boolean {
    return this.runs >= this.#limit || this.#signal?.aborted === true;
  }

  async removeTreesOf(roots: readonly Root[]): Promise<void> {
    if (roots.length === 0 || this.isOver) return;
    const trees = await this.#gather(roots);
    if (trees === "too many") {
      const half = roots.length >> 1;
      await this.removeTreesOf(roots.slice(0, half));
      return this.removeTreesOf(roots.slice(half));
    }
    await this.#removeAll(trees);
  }

  /** The trees of these roots that have ended as a whole; each with its leaves first. */
  async #gather(roots: readonly Root[]): Promise<readonly (readonly string[])[] | "too many"> {
    const trees = new Map(roots.map(({ id }) => [id, [id]]));
    const rootOf = new Map(roots.map(({ id }) => [id, id]));
    let level: readonly Pick<Child, "id" | "hasFailed">[] = roots;
    while (level.length > 0) {
      const next: Child[] = [];
      for await (const child of belongingTo(this.#store, level)) {
        const { id, parentId, finishedAt } = child;
        const root = rootOf.get(parentId) as string;
        rootOf.set(id, root);
        next.push(child);
        if (finishedAt === null || finishedAt >= this.#endedBefore) trees.delete(root);
        else trees.get(root)?.push(id);
        if (rootOf.size > runsInMemory && roots.length > 1) return "too many";
      }
      // What hangs under a tree that stays need not be looked at.
      level = next.filter(({ id }) => trees.has(rootOf.get(id) as string));
    }
    return [...trees.values()].map((tree) => tree.reverse());
  }

  async #removeAll(trees: readonly (readonly string[])[]): Promise<void> {
    const chosen: string[] = [];
    for (const tree of trees) {
      if (this.runs + chosen.length >= this.#limit) break;
      chosen.push(...tree);
    }
    const roots = new Set(trees.map((tree) => tree.at(-1)));
    for (let from = 0; from < chosen.length && this.#signal?.aborted !== true; from += runsPerBatch) {
      const batch = chosen.slice(from, from + runsPerBatch);
      const began = this.#runtime.monotonic();
      this.runs += this.#isDry ? batch.length : await this.#store.upkeep.remove(batch);
      this.trees += batch.filter((id) => roots.has(id)).length;
      if (this.#isDry) continue;
      await this.#rest(this.#runtime.monotonic() - began);
    }
  }

  /** Being told to stop is a reason to rest no longer, not an error. */
  async #rest(ms: number): Promise<void> {
    await sleepUnlessAborted(this.#runtime, Math.min(ms, longestRestMs), this.#signal);
  }
}

/** Children, and retries as if they were children of the runs that they go on for. */
async function* belongingTo(store: Store, runs: readonly Pick<Child, "id" | "hasFailed">[]): AsyncGenerator<Child> {
  yield* childrenOf(
    store,
    runs.map(({ id }) => id),
  );
  const failed = runs.filter(({ hasFailed }) => hasFailed).map(({ id }) => id);
  for (let from = 0; from < failed.length; from += rootsPerPage) {
    const originOf = new Map(failed.slice(from, from + rootsPerPage).map((id) => [retryIdOf(id), id]));
    // One that was canceled may have been retried, too.
    for (const { id, finishedAt, status } of await store.runsById([...originOf.keys()]))
      yield { id, parentId: originOf.get(id) as string, finishedAt, hasFailed: status !== "completed" };
  }
}

async function* childrenOf(store: Store, parentIds: readonly string[]): AsyncGenerator<Child> {
  const sorted = parentIds.toSorted();
  for (let from = 0; from < sorted.length; from += rootsPerPage) {
    const parents = sorted.slice(from, from + rootsPerPage);
    let after: ChildKey | null = null;
    for (;;) {
      const page: readonly Child[] = await store.upkeep.children(parents, { after, limit: childrenPerPage });
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
