/** The step bodies and other work in progress in a turn: while there is any, the run is not parked. */

import type { NewEvent } from "../../core/run/event.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** An attempt whose body is running, as the turn and the slow-step recorder see it. */
export interface RunningAttempt {
  readonly key: string;
  /** Whether the log has the start of the attempt. */
  readonly isStartRecorded: boolean;
  readonly elapsedRealMs: number;
  /** The rest of the attempt's time limit; null: it has none. */
  readonly remainingMs: number | null;
  /** Whether the body has ended, or its time limit has passed. */
  isOver: boolean;
  /** Releases the semaphore slot of a step with limited concurrency. */
  readonly releaseSlot: (() => void) | null;
  readonly scope: { close(): void } | null;
  /** Creates the event of the start; from then on the start counts as recorded. */
  createStartedEvent(): NewEvent;
  recordStart(): Promise<boolean>;
  abort(reason: unknown): void;
  dispose(): void;
}

/** The turn that the attempts belong to. */
interface AttemptsOwner {
  readonly host: { readonly executing: Set<RunningAttempt> };
  readonly results: { readonly pending: ReadonlyMap<string, unknown> };
  readonly pendingWrites: PendingWrites;
  readonly isOver: boolean;
  readonly isDraining: boolean;
  scheduleIdleCheck(): void;
}

/**
 * Counts the work that keeps the run from being parked. An attempt counts from `add` until its outcome is in the log
 * (`onRecorded`); `onBodyEnded` only removes it from the running bodies. `retain` and `release` count other work, in pairs.
 */
export class RunningAttempts {
  readonly #running = new Set<RunningAttempt>();
  readonly #owner: AttemptsOwner;
  /** How many bodies and other operations are in progress. */
  #busy = 0;

  constructor(owner: AttemptsOwner) {
    this.#owner = owner;
  }

  get isBusy(): boolean {
    return this.#busy > 0;
  }

  get hasRunning(): boolean {
    return this.#running.size > 0;
  }

  /** Whether a body of this step is running, including one whose caller no longer waits for it. */
  has(key: string): boolean {
    for (const attempt of this.#running) if (attempt.key === key) return true;
    return false;
  }

  add(attempt: RunningAttempt): void {
    this.#busy += 1;
    this.#running.add(attempt);
    this.#owner.host.executing.add(attempt);
  }

  /** The body has ended, and its outcome is not in the log yet. */
  onBodyEnded(attempt: RunningAttempt): void {
    attempt.isOver = true;
    attempt.releaseSlot?.();
    attempt.scope?.close();
    this.#running.delete(attempt);
    this.#owner.host.executing.delete(attempt);
  }

  /** Counts one more operation in progress. */
  retain(): void {
    this.#busy += 1;
  }

  release(): void {
    this.#busy -= 1;
  }

  /** Keeps the run from being parked until `work` ends. */
  async preventParkingDuring<T>(work: () => Promise<T>): Promise<T> {
    this.retain();
    try {
      return await work();
    } finally {
      this.release();
      this.#owner.scheduleIdleCheck();
    }
  }

  /** The outcome of a body is in the log. */
  onRecorded(): void {
    this.release();
    const { results, isDraining } = this.#owner;
    if (!this.isBusy && (results.pending.size > 0 || isDraining)) this.#owner.scheduleIdleCheck();
  }

  /** The body only waits for something durable, so the run may be parked in the meantime. */
  onBodyWaiting(attempt: RunningAttempt): void {
    const { isOver, pendingWrites } = this.#owner;
    if (!attempt.isStartRecorded && !isOver) {
      // Without the event, the step would still count as due after the run is parked.
      const { remainingMs } = attempt;
      pendingWrites.addWaitEvent(attempt.createStartedEvent(), remainingMs === null ? {} : { inMs: remainingMs });
    }
    this.release();
    this.#owner.scheduleIdleCheck();
  }

  /** The turn no longer waits for any of the work in progress. */
  stopWaiting(): void {
    this.#busy = 0;
  }

  abort(reason: unknown): void {
    for (const attempt of this.#running) attempt.abort(reason);
  }

  /** The worker releases the run: results of bodies that are still running are ignored. */
  disposeAll(): void {
    for (const attempt of this.#running) {
      attempt.dispose();
      attempt.releaseSlot?.();
      this.#owner.host.executing.delete(attempt);
    }
  }

  clear(): void {
    this.#running.clear();
  }
}
