/**
 * A suspect run has blocked the event loop of a worker, or was running when an unknown run did so. A worker executes one
 * suspect run at a time, so that the next block can be attributed to that run.
 */

import { Semaphore } from "../../concurrency/semaphore.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { SlotQueue } from "../step/slot-queue.js";
import type { WorkerWatchdog } from "../watchdog/watchdog.js";

interface SuspectRun {
  readonly runId: string;
  readonly slots: SlotQueue;
  /** Called when the run may start. The run must call `release` when it no longer needs the slot. */
  onSuspectSlotAcquired(release: () => void): void;
  releaseSuspectSlot(): void;
}

export class SuspectRunQueue {
  readonly #semaphore = new Semaphore(1);
  readonly #watchdog: WorkerWatchdog | null;
  readonly #runtime: Runtime;
  /** A run that has not blocked the event loop for this long gives up its slot. */
  readonly #maxSlotMs: number;

  constructor(watchdog: WorkerWatchdog | null, leaseMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#watchdog = watchdog;
    this.#maxSlotMs = 2 * leaseMs;
  }

  /** Calls `start` when the slot is free. */
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
