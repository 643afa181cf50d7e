/**
 * Runs that have blocked the event loop of a worker, or were there when one of them did and it is not known which. A worker
 * executes one of them at a time, so that the one that does it again is known.
 */

import { Semaphore } from "../../concurrency/semaphore.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { SlotQueue } from "../step/slot-queue.js";
import type { Watch } from "../watchdog/watchdog.js";

/** A run that is executed apart from others like it. */
interface Suspect {
  readonly runId: string;
  readonly slots: SlotQueue;
  /** `end` makes room for the next of them. */
  onTrial(end: () => void): void;
  endTrial(): void;
}

export class Trials {
  readonly #line = new Semaphore(1);
  readonly #watch: Watch | null;
  readonly #runtime: Runtime;
  /** A run that has not blocked for this long lets the next one have its turn. */
  readonly #longestMs: number;

  constructor(watch: Watch | null, leaseMs: number, runtime: Runtime) {
    this.#runtime = runtime;
    this.#watch = watch;
    this.#longestMs = 2 * leaseMs;
  }

  /** Calls `begin` when it is this run's turn. */
  enqueue(turn: Suspect, begin: () => void): void {
    turn.slots.stand(this.#line, (leave) => {
      const end = () => {
        this.#runtime.clearTimeout(timer);
        this.#watch?.clear();
        leave();
      };
      const timer = this.#runtime.setTimeout(() => turn.endTrial(), this.#longestMs).unref();
      turn.onTrial(end);
      this.#watch?.suspect(turn.runId);
      begin();
    });
  }
}
