/**
 * Runs that have blocked the event loop of a worker, or were there when one of them did and it is not known which. A worker
 * executes one of them at a time, so that the one that does it again is known.
 */
import { Places } from "../../concurrency/semaphore.js";
import type { Watch } from "../watchdog/watchdog.js";
import type { Turn } from "./turn.js";

export class Trials {
  readonly #line = new Places(1);
  readonly #watch: Watch | null;
  /** A run that has not blocked for this long lets the next one have its turn. */
  readonly #longestMs: number;

  constructor(watch: Watch | null, leaseMs: number) {
    this.#watch = watch;
    this.#longestMs = 2 * leaseMs;
  }

  /** Calls `begin` when it is this run's turn. */
  hold(turn: Turn, begin: () => void): void {
    turn.lines.stand(this.#line, (leave) => {
      const end = () => {
        clearTimeout(timer);
        this.#watch?.clear();
        leave();
      };
      const timer = setTimeout(() => turn.endTrial(), this.#longestMs).unref();
      turn.onTrial(end);
      this.#watch?.suspect(turn.runId);
      begin();
    });
  }
}
