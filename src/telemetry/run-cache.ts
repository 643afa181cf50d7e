/**
 * Finds two facts that a message does not contain about its run: the root run that it descends from, and when its code
 * started. Usually an earlier message in this process contained the fact; otherwise the cache reads it from the
 * database, once.
 */
import { LruMap } from "../core/lru-map.js";
import type { PublishedRun, RunEvent } from "./publish.js";

/** The part of `Pawl` that every exporter uses. */
export interface RunSource {
  /** The run with this id, as `pawl.run` returns it. */
  run(id: string): {
    /** Reads the run. */
    get(): Promise<{
      /** The run that started this one, or null if no run did. */
      readonly parentId: string | null;
      /** When its code started, or null if it has not started. */
      readonly startedAt: Date | null;
    }>;
  };
}

/** With this limit the cache takes about 2 MB at most. */
const maxCachedRuns = 10_000;

export class RunCache {
  readonly #source: RunSource;
  readonly #onError: (error: unknown) => void;
  readonly #rootIds = new LruMap<string>(maxCachedRuns);
  readonly #startedAt = new LruMap<number>(maxCachedRuns);
  readonly #pendingRootReads = new Map<string, Promise<string>>();

  constructor(source: RunSource, onError: (error: unknown) => void) {
    this.#source = source;
    this.#onError = onError;
  }

  /** Caches the root of a run before its children need it. */
  recordRun({ runId, parentId }: PublishedRun): void {
    const root = parentId === null ? runId : this.#rootIds.get(parentId);
    if (root !== undefined) this.#rootIds.set(runId, root);
  }

  recordStart({ runId, at }: RunEvent): void {
    this.#startedAt.set(runId, at);
  }

  findRootId({ runId, parentId }: Pick<PublishedRun, "runId" | "parentId">): string | Promise<string> {
    return parentId === null ? runId : (this.#rootIds.get(parentId) ?? this.#readRootOnce(parentId));
  }

  /**
   * Returns when the code of an ended run started, or null if it never did, and removes the run's entry from the cache.
   */
  takeStartedAt(runId: string): number | null | Promise<number | null> {
    return this.#startedAt.take(runId) ?? this.#readStartedAt(runId);
  }

  /** All children of a map may end at the same time: they share one read. */
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
      this.#rootIds.set(runId, root);
      return root;
    } catch (error) {
      // The root cannot be read, so the oldest known ancestor is used in its place.
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
