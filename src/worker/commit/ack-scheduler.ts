/**
 * Hands receipts to those who wait for them, a batch per turn of the event loop.
 *
 * Each receipt sets a run going again, so handing out a few hundred keeps Node busy for milliseconds. The database must
 * not sit idle meanwhile: what the first batch of runs submits is on its way before the second batch is told, and when
 * more is waiting to be flushed, that goes first. Otherwise all runs of a worker advance in step, and Node and the
 * database take turns instead of working at the same time.
 */
import type { Runtime } from "../../runtime/runtime.js";

interface Pending<T> {
  readonly receive: (receipt: T) => void;
  readonly receipt: T;
}

/** Smaller batches make more and smaller flushes, larger ones leave the database waiting. */
const smallest = 32;
const largest = 128;
/** A store that answers without any I/O could keep the process from doing anything else. */
const patienceMs = 4;

export class AckScheduler {
  readonly #runtime: Runtime;
  #pending: Pending<any>[] = [];
  #handingOut = false;
  /** When the first receipts of this turn of the event loop were handed out. */
  #turnBegan: number | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  add<T>(receive: (receipt: T) => void, receipt: T): void {
    this.#pending.push({ receive, receipt });
  }

  /** @param flushWaits whether there is something to flush first */
  handOut(flushWaits: boolean): void {
    if (this.#handingOut || this.#pending.length === 0) return;
    this.#handingOut = true;
    if (flushWaits || this.#loopStandsStill()) this.#runtime.setImmediate(this.#next);
    else this.#next();
  }

  /** All runs are made to wait together, so that they go on sharing their commits. */
  #loopStandsStill(): boolean {
    const now = this.#runtime.monotonic();
    if (this.#turnBegan !== null) return now - this.#turnBegan > patienceMs;
    this.#turnBegan = now;
    this.#runtime.setImmediate(() => {
      this.#turnBegan = null;
    });
    return false;
  }

  readonly #next = (): void => {
    const half = Math.ceil(this.#pending.length / 2);
    const batch = this.#pending.splice(0, Math.min(Math.max(half, smallest), largest));
    for (const { receive, receipt } of batch) receive(receipt);
    if (this.#pending.length > 0) this.#runtime.setImmediate(this.#next);
    else this.#handingOut = false;
  };
}
