/**
 * The step bodies and other operations in progress in a turn. While at least one is in progress, the run is not parked.
 */

import type { NewEvent } from "../../core/run/event.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** An attempt whose body is running, as the turn and the slow-step recorder see it. */
export interface RunningAttempt {
  readonly key: string;
  /** Whether the `step.started` event of the attempt was created. */
  readonly isStartRecorded: boolean;
  readonly elapsedRealMs: number;
  /** How much of the attempt's time limit is left; null: the attempt has no time limit. */
  readonly remainingMs: number | null;
  /** Whether the body has ended, or its time limit has passed. */
  isOver: boolean;
  /** Releases the semaphore slot of a step with limited concurrency. */
  readonly releaseSlot: (() => void) | null;
  readonly scope: { close(): void } | null;
  /** Creates the `step.started` event and sets `isStartRecorded`; the caller must write the event. */
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
  readonly #runningAttempts = new Set<RunningAttempt>();
  /** Of these, those whose bodies wait for the results of durable calls and do nothing else. */
  readonly #waitingAttempts = new Set<RunningAttempt>();
  readonly #owner: AttemptsOwner;
  /** How many bodies and other operations prevent the run from being parked. */
  #busyCount = 0;
  #startedCount = 0;

  constructor(owner: AttemptsOwner) {
    this.#owner = owner;
  }

  get isBusy(): boolean {
    return this.#busyCount > 0;
  }

  /** How many attempts have started in this turn. */
  get startedCount(): number {
    return this.#startedCount;
  }

  get hasRunning(): boolean {
    return this.#runningAttempts.size > 0;
  }

  /** Whether a body of this step is running, including one whose caller no longer waits for it. */
  has(key: string): boolean {
    for (const attempt of this.#runningAttempts) if (attempt.key === key) return true;
    return false;
  }

  /** Whether the code of this step is running, rather than waiting for something durable. */
  isExecuting(key: string): boolean {
    for (const attempt of this.#runningAttempts)
      if (attempt.key === key && !this.#waitingAttempts.has(attempt)) return true;
    return false;
  }

  add(attempt: RunningAttempt): void {
    this.#busyCount += 1;
    this.#startedCount += 1;
    this.#runningAttempts.add(attempt);
    this.#owner.host.executing.add(attempt);
  }

  /** Called when the body has ended; its outcome is not in the log yet, so the run must not be parked yet. */
  onBodyEnded(attempt: RunningAttempt): void {
    attempt.isOver = true;
    attempt.releaseSlot?.();
    attempt.scope?.close();
    this.#runningAttempts.delete(attempt);
    this.#waitingAttempts.delete(attempt);
    this.#owner.host.executing.delete(attempt);
  }

  /** Prevents the run from being parked until `release` is called. */
  retain(): void {
    this.#busyCount += 1;
  }

  /** What was retained before `stopWaiting` does not count any more. */
  release(): void {
    if (this.#busyCount > 0) this.#busyCount -= 1;
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

  /** Called when the outcome of a body is in the log. */
  onRecorded(): void {
    this.release();
    const { results, isDraining } = this.#owner;
    if (!this.isBusy && (results.pending.size > 0 || isDraining)) this.#owner.scheduleIdleCheck();
  }

  /** Called when a body waits for the results of durable calls and does nothing else, so that the run may be parked. */
  onBodyWaiting(attempt: RunningAttempt): void {
    const { isOver, pendingWrites } = this.#owner;
    if (!attempt.isStartRecorded && !isOver) {
      // Without this event, the log would show a retried step as still due, and the parked run would wake at once.
      const { remainingMs } = attempt;
      pendingWrites.addWaitEvent(attempt.createStartedEvent(), remainingMs === null ? {} : { inMs: remainingMs });
    }
    this.#waitingAttempts.add(attempt);
    this.release();
    this.#owner.scheduleIdleCheck();
  }

  /** Called when a result that the body waited for is about to be delivered to it. */
  onBodyContinues(attempt: RunningAttempt): void {
    this.#waitingAttempts.delete(attempt);
    this.retain();
  }

  /** From now on, the turn waits for none of the bodies and operations in progress. */
  stopWaiting(): void {
    this.#busyCount = 0;
  }

  abort(reason: unknown): void {
    for (const attempt of this.#runningAttempts) attempt.abort(reason);
  }

  /** Called when the turn ends; the results of bodies that are still running are ignored. */
  disposeAll(): void {
    for (const attempt of this.#runningAttempts) {
      attempt.dispose();
      attempt.releaseSlot?.();
      this.#owner.host.executing.delete(attempt);
    }
  }

  clear(): void {
    this.#runningAttempts.clear();
    this.#waitingAttempts.clear();
  }
}
