/** The bodies of steps that run in a turn, and whatever else is under way: while there is anything, its run cannot be parked. */

import type { NewEvent } from "../../core/run/event.js";
import type { PendingWrites } from "../commit/pending-writes.js";

/** An attempt at a step whose body runs, as far as the turn and the watch for slow steps are concerned. */
export interface RunningAttempt {
  readonly key: string;
  /** Whether the log has its start. */
  readonly startRecorded: boolean;
  readonly elapsedRealMs: number;
  /** What is left of its time limit. */
  readonly remainingMs: number | null;
  /** Its body has ended, or has been given up on. */
  over: boolean;
  /** Of a step of which only so many are executed at a time. */
  readonly leavePlace: (() => void) | null;
  readonly scope: { close(): void } | null;
  /** The event of its start, which counts as recorded from then on. */
  started(): NewEvent;
  recordStart(): Promise<boolean>;
  abort(reason: unknown): void;
  dispose(): void;
}

/** The turn that the attempts belong to. */
interface AttemptsOwner {
  readonly host: { readonly executing: Set<RunningAttempt> };
  readonly results: { readonly pending: ReadonlyMap<string, unknown> };
  readonly pendingWrites: PendingWrites;
  readonly over: boolean;
  readonly halted: boolean;
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

  get busy(): boolean {
    return this.#busy > 0;
  }

  get any(): boolean {
    return this.#running.size > 0;
  }

  /** Whether a body of this step is running: a call that was given up on may still be. */
  has(key: string): boolean {
    for (const execution of this.#running) if (execution.key === key) return true;
    return false;
  }

  began(execution: RunningAttempt): void {
    this.#busy += 1;
    this.#running.add(execution);
    this.#owner.host.executing.add(execution);
  }

  /** The body is over; what came of it is not in the log yet. */
  ended(execution: RunningAttempt): void {
    execution.over = true;
    execution.leavePlace?.();
    execution.scope?.close();
    this.#running.delete(execution);
    this.#owner.host.executing.delete(execution);
  }

  /** Something more is under way, or goes on. */
  retain(): void {
    this.#busy += 1;
  }

  release(): void {
    this.#busy -= 1;
  }

  /** Keeps the run from being parked while `work` goes on. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.retain();
    try {
      return await work();
    } finally {
      this.release();
      this.#owner.scheduleIdleCheck();
    }
  }

  /** What came of a body is in the log. */
  settled(): void {
    this.release();
    const { results, halted } = this.#owner;
    if (!this.busy && (results.pending.size > 0 || halted)) this.#owner.scheduleIdleCheck();
  }

  /** The body of this step only waits for something durable: the run may be parked meanwhile. */
  rest(attempt: RunningAttempt): void {
    const { over, pendingWrites } = this.#owner;
    if (!attempt.startRecorded && !over) {
      // Without it, the step would still count as due.
      const { remainingMs } = attempt;
      pendingWrites.open(attempt.started(), remainingMs === null ? {} : { inMs: remainingMs });
    }
    this.release();
    this.#owner.scheduleIdleCheck();
  }

  /** Nothing waits for what runs any more. */
  giveUp(): void {
    this.#busy = 0;
  }

  abort(reason: unknown): void {
    for (const execution of this.#running) execution.abort(reason);
  }

  /** The run is let go of: what still runs here is of no use any more. */
  leave(): void {
    for (const execution of this.#running) {
      execution.dispose();
      execution.leavePlace?.();
      this.#owner.host.executing.delete(execution);
    }
  }

  clear(): void {
    this.#running.clear();
  }
}
