/**
 * Hands receipts to those who wait for them, a batch per turn of the event loop.
 *
 * Each receipt sets a run going again, so handing out a few hundred keeps Node busy for milliseconds. The database must
 * not sit idle meanwhile: what the first batch of runs submits is on its way before the second batch is told, and when
 * more is waiting to be flushed, that goes first. Otherwise all runs of a worker advance in step, and Node and the
 * database take turns instead of working at the same time.
 */
interface Pending<T> {
  readonly receive: (receipt: T) => void;
  readonly receipt: T;
}

/** Fewer and larger batches were slower, smaller ones not faster. */
const batchSize = 32;

export class Receipts {
  #pending: Pending<any>[] = [];
  #handingOut = false;

  add<T>(receive: (receipt: T) => void, receipt: T): void {
    this.#pending.push({ receive, receipt });
  }

  /** @param flushWaits whether there is something to flush first */
  handOut(flushWaits: boolean): void {
    if (this.#handingOut || this.#pending.length === 0) return;
    this.#handingOut = true;
    if (flushWaits) setImmediate(this.#next);
    else this.#next();
  }

  readonly #next = (): void => {
    const batch = this.#pending.length <= batchSize ? this.#pending : this.#pending.splice(0, batchSize);
    if (batch === this.#pending) this.#pending = [];
    for (const { receive, receipt } of batch) receive(receipt);
    if (this.#pending.length > 0) setImmediate(this.#next);
    else this.#handingOut = false;
  };
}
