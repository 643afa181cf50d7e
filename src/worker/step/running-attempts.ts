/** The bodies of steps that run in a turn, and whatever else is under way: while there is anything, its run cannot be parked. */

import type { NewEvent } from "../../core/run/event.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** An attempt at a step whose body runs, as far as the turn and the watch for slow steps are concerned. */
export interface RunningAttempt {
  readonly key: string;
  /** Whether the log has its start. */
  readonly isStartRecorded: boolean;
  readonly elapsedRealMs: number;
  /** What is left of its time limit. */
  readonly remainingMs: number | null;
  /** Its body has ended, or has been given up on. */
  isOver: boolean;
  /** Of a step of which only so many are executed at a time. */
  readonly releaseSlot: (() => void) | null;
  readonly scope: { close(): void } | null;
  /** The event of its start, which counts as recorded from then on. */
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
 * Counts what keeps the run from being parked. An attempt counts from `began` until what came of it is in the log (`settled`):
 * `ended` only takes it off the list of bodies that run. `retain` and `release` count other work, in pairs.
 */
export class RunningAttempts {
  readonly #running = new Set<RunningAttempt>();
  readonly #owner: AttemptsOwner;
  /** Bodies and look-ups under way. */
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

  /** Whether a body of this step is running: a call that was given up on may still be. */
  has(key: string): boolean {
    for (const attempt of this.#running) if (attempt.key === key) return true;
    return false;
  }

  add(attempt: RunningAttempt): void {
    this.#busy += 1;
    this.#running.add(attempt);
    this.#owner.host.executing.add(attempt);
  }

  /** The body is over; what came of it is not in the log yet. */
  onBodyEnded(attempt: RunningAttempt): void {
    attempt.isOver = true;
    attempt.releaseSlot?.();
    attempt.scope?.close();
    this.#running.delete(attempt);
    this.#owner.host.executing.delete(attempt);
  }

  /** Something more is under way, or goes on. */
  retain(): void {
    this.#busy += 1;
  }

  release(): void {
    this.#busy -= 1;
  }

  /** Keeps the run from being parked while `work` goes on. */
  async preventParkingDuring<T>(work: () => Promise<T>): Promise<T> {
    this.retain();
    try {
      return await work();
    } finally {
      this.release();
      this.#owner.scheduleIdleCheck();
    }
  }

  /** What came of a body is in the log. */
  onRecorded(): void {
    this.release();
    const { results, isDraining } = this.#owner;
    if (!this.isBusy && (results.pending.size > 0 || isDraining)) this.#owner.scheduleIdleCheck();
  }

  /** The body of this step only waits for something durable: the run may be parked meanwhile. */
  onBodyWaiting(attempt: RunningAttempt): void {
    const { isOver, pendingWrites } = this.#owner;
    if (!attempt.isStartRecorded && !isOver) {
      // Without it, the step would still count as due.
      const { remainingMs } = attempt;
      pendingWrites.addWaitEvent(attempt.createStartedEvent(), remainingMs === null ? {} : { inMs: remainingMs });
    }
    this.release();
    this.#owner.scheduleIdleCheck();
  }

  /** Nothing waits for what runs any more. */
  stopWaiting(): void {
    this.#busy = 0;
  }

  abort(reason: unknown): void {
    for (const attempt of this.#running) attempt.abort(reason);
  }

  /** The run is let go of: what still runs here is of no use any more. */
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
