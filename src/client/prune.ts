/**
 * Deletes runs that ended long ago, as whole trees: a parent and its children belong together, and children's ids are
 * computed from their parent's.
 *
 * The leaves go first and the root last. If this is cut short, the rest still hangs together and the next time finds it. It
 * goes in small batches, and rests after each for as long as it took: the database has at least half of its time for others.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Duration, parseDuration } from "../core/duration.js";
import { InvalidInputError } from "../core/errors.js";
import { type AnyWorkflow, asDefinition } from "../define/as-definition.js";
import type { Age, Child, ChildKey, Root, Store } from "../store/store.js";

export interface PruneOptions {
  /** How long ago a run and all its descendants must have ended. */
  readonly olderThan: Duration;
  /** Only trees whose root is of this workflow. */
  readonly workflow?: AnyWorkflow | string;
  /** Stops when so many runs are gone; a tree that was begun is finished. */
  readonly limit?: number;
  /** Stops after the batch that is under way. */
  readonly signal?: AbortSignal;
}

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

export async function prune(store: Store, options: PruneOptions): Promise<Pruned> {
  const olderThanMs = parseDuration(options.olderThan, "olderThan");
  const limit = checkLimit(options.limit);
  const endedBefore = (await store.now()) - olderThanMs;
  const pruning = new Pruning(store, endedBefore, limit, options.signal);
  for await (const roots of oldRoots(store, endedBefore, nameOf(options.workflow))) {
    await pruning.removeTreesOf(roots.filter(({ finishedAt }) => finishedAt !== null && finishedAt < endedBefore));
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

class Pruning {
  runs = 0;
  trees = 0;
  readonly #store: Store;
  readonly #endedBefore: number;
  readonly #limit: number;
  readonly #signal: AbortSignal | undefined;

  constructor(store: Store, endedBefore: number, limit: number, signal: AbortSignal | undefined) {
    this.#store = store;
    this.#endedBefore = endedBefore;
    this.#limit = limit;
    this.#signal = signal;
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
    let level: readonly string[] = [...trees.keys()];
    while (level.length > 0) {
      const next: string[] = [];
      for await (const { id, parentId, finishedAt } of childrenOf(this.#store, level)) {
        const root = rootOf.get(parentId) as string;
        rootOf.set(id, root);
        next.push(id);
        if (finishedAt === null || finishedAt >= this.#endedBefore) trees.delete(root);
        else trees.get(root)?.push(id);
        if (rootOf.size > runsInMemory && roots.length > 1) return "too many";
      }
      // What hangs under a tree that stays need not be looked at.
      level = next.filter((id) => trees.has(rootOf.get(id) as string));
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
      const began = performance.now();
      this.runs += await this.#store.upkeep.remove(batch);
      this.trees += batch.filter((id) => roots.has(id)).length;
      await this.#rest(performance.now() - began);
    }
  }

  /** Being told to stop is a reason to rest no longer, not an error. */
  async #rest(ms: number): Promise<void> {
    const options = this.#signal === undefined ? {} : { signal: this.#signal };
    await sleep(Math.min(ms, longestRestMs), undefined, options).catch(() => {});
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

const nameOf = (workflow: AnyWorkflow | string | undefined): string | null => {
  if (workflow === undefined) return null;
  return typeof workflow === "string" ? workflow : asDefinition(workflow).name;
};

function checkLimit(limit: number | undefined): number {
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isInteger(limit) && limit > 0) return limit;
  throw new InvalidInputError(`prune({ limit }) is a whole number above 0, not ${limit}.`);
}
