/**
 * Waiting for runs to end: woken by hints, with one poll for all that are waited for as the backstop. However many wait,
 * a wake-up costs one read.
 */

import { nextLookIn } from "../../concurrency/poll-interval.js";
import { InvalidStateError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Hint, RunRecord, Store } from "../../store/contract/store.js";

type Listener = (run: RunRecord | Error) => void;

const pollMs = 1_000;
const pageSize = 500;

export class ResultWaiter {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #waiting = new Map<string, Set<Listener>>();
  readonly #due = new Set<string>();
  #unwatch: (() => void) | null = null;
  #stopLooking: (() => void) | null = null;
  /** Since when no caller has begun to wait and nothing was found. */
  #quietSince = Number.NEGATIVE_INFINITY;
  #looking = false;

  constructor(store: Store, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  /** Calls the listener once the run has ended, or with an error when it does not exist. Returns how to stop waiting. */
  wait(runId: string, listener: Listener): () => void {
    this.#listen();
    let listeners = this.#waiting.get(runId);
    if (listeners === undefined) this.#waiting.set(runId, (listeners = new Set()));
    listeners.add(listener);
    this.#look([runId]);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#waiting.get(runId) === listeners) this.#waiting.delete(runId);
      if (this.#waiting.size === 0) this.#rest();
    };
  }

  close(): void {
    const error = new InvalidStateError("Pawl was closed while a result was waited for.");
    for (const listeners of this.#waiting.values()) for (const listener of listeners) listener(error);
    this.#waiting.clear();
    this.#rest();
    this.#unwatch?.();
    this.#unwatch = null;
  }

  #listen(): void {
    this.#unwatch ??= this.#store.watch((hint) => this.#onHint(hint));
    const wasQuiet = this.#runtime.monotonic() - this.#quietSince > 1_000;
    this.#quietSince = this.#runtime.monotonic();
    if (this.#stopLooking === null || (wasQuiet && !this.#store.hearsOthers)) this.#keepLooking();
  }

  #keepLooking(): void {
    this.#rest();
    if (this.#store.hearsOthers) {
      const timer = this.#runtime.setInterval(() => this.#look(this.#waiting.keys()), pollMs);
      this.#stopLooking = () => this.#runtime.clearInterval(timer);
      return;
    }
    const delay = nextLookIn(this.#runtime.monotonic() - this.#quietSince, pollMs);
    const timer = this.#runtime.setTimeout(() => {
      this.#look(this.#waiting.keys());
      this.#keepLooking();
    }, delay);
    this.#stopLooking = () => this.#runtime.clearTimeout(timer);
  }

  #rest(): void {
    this.#stopLooking?.();
    this.#stopLooking = null;
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "done") this.#look(hint.runIds.filter((id) => this.#waiting.has(id)));
    if (hint.kind === "anything") this.#look(this.#waiting.keys());
  }

  #look(runIds: Iterable<string>): void {
    for (const id of runIds) this.#due.add(id);
    if (this.#looking || this.#due.size === 0) return;
    this.#looking = true;
    queueMicrotask(() => void this.#read());
  }

  async #read(): Promise<void> {
    try {
      while (this.#due.size > 0) {
        const ids = [...this.#due].slice(0, pageSize);
        for (const id of ids) this.#due.delete(id);
        this.#tell(ids, await this.#store.runsById(ids));
      }
    } catch {
      // The database is away; the poll looks again.
    } finally {
      this.#looking = false;
    }
  }

  #tell(ids: readonly string[], runs: readonly RunRecord[]): void {
    const found = new Map(runs.map((run) => [run.id, run]));
    for (const id of ids) {
      const run = found.get(id) ?? new Error("unknown");
      if (!(run instanceof Error) && run.finishedAt === null) continue;
      this.#quietSince = this.#runtime.monotonic();
      const listeners = this.#waiting.get(id);
      this.#waiting.delete(id);
      for (const listener of listeners ?? []) listener(run);
    }
    if (this.#waiting.size === 0) this.#rest();
  }
}
