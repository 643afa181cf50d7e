/**
 * Runs that have blocked the event loop of a worker, or were there when one of them did and it is not known which. A worker
 * executes one of them at a time, so that the one that does it again is known.
 */

import { Semaphore } from "../../concurrency/semaphore.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { SlotQueue } from "../step/slot-queue.js";
import type { WorkerWatchdog } from "../watchdog/watchdog.js";

/** A run that is executed apart from others like it. */
interface SuspectRun {
  readonly runId: string;
  readonly slots: SlotQueue;
  /** `end` makes room for the next of them. */
  onSuspectSlotAcquired(release: () => void): void;
  releaseSuspectSlot(): void;
}

export class SuspectRunQueue {
  readonly #semaphore = new Semaphore(1);
  readonly #watchdog: WorkerWatchdog | null;
  readonly #runtime: Runtime;
  /** A run that has not blocked for this long lets the next one have its turn. */
  readonly #maxSlotMs: number;

  constructor(watchdog: WorkerWatchdog | null, leaseMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#watchdog = watchdog;
    this.#maxSlotMs = 2 * leaseMs;
  }

  /** Calls `begin` when it is this run's turn. */
  enqueue(turn: SuspectRun, start: () => void): void {
    turn.slots.enqueue(this.#semaphore, (releaseSlot) => {
      const release = () => {
        this.#runtime.clearTimeout(timer);
        this.#watchdog?.clearSuspect();
        releaseSlot();
      };
      const timer = this.#runtime.setTimeout(() => turn.releaseSuspectSlot(), this.#maxSlotMs).unref();
      turn.onSuspectSlotAcquired(release);
      this.#watchdog?.markSuspect(turn.runId);
      start();
    });
  }
}
