/**
 * What a message does not say about its run: which run its whole family descends from, and when its code began. Mostly
 * that was heard in this process before; otherwise the database is asked, once.
 */
import { LruMap } from "./lru-map.js";
import type { PublishedRun, RunEvent } from "./publish.js";

/** What is asked of Pawl. */
export interface RunSource {
  run(id: string): {
    get(): Promise<{ readonly parentId: string | null; readonly startedAt: Date | null }>;
  };
}

/** About 2 MB at most. */
const maxCachedRuns = 10_000;

export class RunCache {
  readonly #source: RunSource;
  readonly #onError: (error: unknown) => void;
  readonly #roots = new LruMap<string>(maxCachedRuns);
  readonly #startedAt = new LruMap<number>(maxCachedRuns);
  readonly #pendingRootReads = new Map<string, Promise<string>>();

  constructor(source: RunSource, complain: (error: unknown) => void) {
    this.#source = source;
    this.#onError = complain;
  }

  /** Those who ask for the root of a run are mostly its children. */
  recordRun({ runId, parentId }: PublishedRun): void {
    const root = parentId === null ? runId : this.#roots.get(parentId);
    if (root !== undefined) this.#roots.set(runId, root);
  }

  recordStart({ runId, at }: RunEvent): void {
    this.#startedAt.set(runId, at);
  }

  findRootId({ runId, parentId }: Pick<PublishedRun, "runId" | "parentId">): string | Promise<string> {
    return parentId === null ? runId : (this.#roots.get(parentId) ?? this.#readRootOnce(parentId));
  }

  /** When the code of a run that has ended began; null when it never did. */
  takeStartedAt(runId: string): number | null | Promise<number | null> {
    return this.#startedAt.take(runId) ?? this.#readStartedAt(runId);
  }

  /** All children of a map may end at once: they ask once. */
  #readRootOnce(runId: string): Promise<string> {
    const pendingRead = this.#pendingRootReads.get(runId);
    if (pendingRead !== undefined) return pendingRead;
    const read = this.#readRoot(runId).finally(() => this.#pendingRootReads.delete(runId));
    this.#pendingRootReads.set(runId, read);
    return read;
  }

  async #readRoot(runId: string): Promise<string> {
    try {
      const { parentId } = await this.#source.run(runId).get();
      const root = await this.findRootId({ runId, parentId });
      this.#roots.set(runId, root);
      return root;
    } catch (error) {
      // The oldest one that we know of has to do.
      this.#onError(error);
      return runId;
    }
  }

  async #readStartedAt(runId: string): Promise<number | null> {
    try {
      return (await this.#source.run(runId).get()).startedAt?.getTime() ?? null;
    } catch (error) {
      this.#onError(error);
      return null;
    }
  }
}
