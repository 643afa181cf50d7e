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
const minBatchSize = 32;
const maxBatchSize = 128;
/** A store that answers without any I/O could keep the process from doing anything else. */
const maxTickMs = 4;

export class AckScheduler {
  readonly #runtime: Runtime;
  #pending: Pending<any>[] = [];
  #isDelivering = false;
  /** When the first receipts of this turn of the event loop were handed out. */
  #tickStartedAt: number | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  add<T>(receive: (receipt: T) => void, receipt: T): void {
    this.#pending.push({ receive, receipt });
  }

  /** @param hasFlushWaiting whether there is something to flush first */
  deliver(hasFlushWaiting: boolean): void {
    if (this.#isDelivering || this.#pending.length === 0) return;
    this.#isDelivering = true;
    if (hasFlushWaiting || this.#isTickUsedUp()) this.#runtime.setImmediate(this.#next);
    else this.#next();
  }

  /** All runs are made to wait together, so that they go on sharing their commits. */
  #isTickUsedUp(): boolean {
    const now = this.#runtime.monotonic();
    if (this.#tickStartedAt !== null) return now - this.#tickStartedAt > maxTickMs;
    this.#tickStartedAt = now;
    this.#runtime.setImmediate(() => {
      this.#tickStartedAt = null;
    });
    return false;
  }

  readonly #next = (): void => {
    const half = Math.ceil(this.#pending.length / 2);
    const batch = this.#pending.splice(0, Math.min(Math.max(half, minBatchSize), maxBatchSize));
    for (const { receive, receipt } of batch) receive(receipt);
    if (this.#pending.length > 0) this.#runtime.setImmediate(this.#next);
    else this.#isDelivering = false;
  };
}
