/**
 * Waits for runs to end. It reads the runs when the store sends a hint. Because hints can be lost, it also polls, with one
 * timer for all waiting callers. One query reads up to 500 runs.
 */

import { adaptivePollInterval } from "../../concurrency/poll-interval.js";
import { InvalidStateError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Hint, RunRecord, Store } from "../../store/contract/store.js";

type Listener = (run: RunRecord | Error) => void;

const pollIntervalMs = 1_000;
const pageSize = 500;

export class ResultWaiter {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #listenersByRun = new Map<string, Set<Listener>>();
  readonly #idsToRead = new Set<string>();
  #stopWatching: (() => void) | null = null;
  #cancelPollTimer: (() => void) | null = null;
  /**
   * When a caller last started to wait, or a run was last found to have ended. The longer ago this is, the longer the poll
   * interval.
   */
  #lastActivityAt = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(store: Store, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  /**
   * Calls the listener with the run when it has ended, or with an error if the run does not exist or the client is closed.
   * Returns a function that stops waiting.
   */
  wait(runId: string, listener: Listener): () => void {
    this.#startWatching();
    let listeners = this.#listenersByRun.get(runId);
    if (listeners === undefined) this.#listenersByRun.set(runId, (listeners = new Set()));
    listeners.add(listener);
    this.#requestRead([runId]);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listenersByRun.get(runId) === listeners) this.#listenersByRun.delete(runId);
      if (this.#listenersByRun.size === 0) this.#stopPolling();
    };
  }

  close(): void {
    const error = new InvalidStateError("Pawl was closed while result() was waiting.");
    for (const listeners of this.#listenersByRun.values()) for (const listener of listeners) listener(error);
    this.#listenersByRun.clear();
    this.#stopPolling();
    this.#stopWatching?.();
    this.#stopWatching = null;
  }

  #startWatching(): void {
    this.#stopWatching ??= this.#store.watch((hint) => this.#onHint(hint));
    const wasIdle = this.#runtime.monotonic() - this.#lastActivityAt > 1_000;
    this.#lastActivityAt = this.#runtime.monotonic();
    if (this.#cancelPollTimer === null || (wasIdle && !this.#store.hasCrossProcessHints)) this.#schedulePoll();
  }

  #schedulePoll(): void {
    this.#stopPolling();
    if (this.#store.hasCrossProcessHints) {
      const timer = this.#runtime.setInterval(() => this.#requestRead(this.#listenersByRun.keys()), pollIntervalMs);
      this.#cancelPollTimer = () => this.#runtime.clearInterval(timer);
      return;
    }
    const delay = adaptivePollInterval(this.#runtime.monotonic() - this.#lastActivityAt, pollIntervalMs);
    const timer = this.#runtime.setTimeout(() => {
      this.#requestRead(this.#listenersByRun.keys());
      this.#schedulePoll();
    }, delay);
    this.#cancelPollTimer = () => this.#runtime.clearTimeout(timer);
  }

  #stopPolling(): void {
    this.#cancelPollTimer?.();
    this.#cancelPollTimer = null;
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "done") this.#requestRead(hint.runIds.filter((id) => this.#listenersByRun.has(id)));
    if (hint.kind === "anything") this.#requestRead(this.#listenersByRun.keys());
  }

  #requestRead(runIds: Iterable<string>): void {
    for (const id of runIds) this.#idsToRead.add(id);
    if (this.#isReading || this.#idsToRead.size === 0) return;
    this.#isReading = true;
    queueMicrotask(() => void this.#read());
  }

  async #read(): Promise<void> {
    try {
      while (this.#idsToRead.size > 0) {
        const ids = [...this.#idsToRead].slice(0, pageSize);
        for (const id of ids) this.#idsToRead.delete(id);
        this.#notifyListeners(ids, await this.#store.runsById(ids));
      }
    } catch {
      // The database is unreachable; the next poll tries again.
    } finally {
      this.#isReading = false;
    }
  }

  #notifyListeners(ids: readonly string[], runs: readonly RunRecord[]): void {
    const runsById = new Map(runs.map((run) => [run.id, run]));
    for (const id of ids) {
      const run = runsById.get(id) ?? new Error("unknown");
      if (!(run instanceof Error) && run.finishedAt === null) continue;
      this.#lastActivityAt = this.#runtime.monotonic();
      const listeners = this.#listenersByRun.get(id);
      this.#listenersByRun.delete(id);
      for (const listener of listeners ?? []) listener(run);
    }
    if (this.#listenersByRun.size === 0) this.#stopPolling();
  }
}
