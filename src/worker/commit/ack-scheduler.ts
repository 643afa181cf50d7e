/**
 * Delivers the receipts of a commit to the runs that wait for them, one batch per turn of the event loop.
 *
 * Each receipt resumes a run, so delivering a few hundred receipts keeps Node busy for milliseconds, during which the
 * database must not be idle. Therefore the writes of the runs in the first batch are sent before the second batch is
 * delivered, and a flush that is already queued is sent before the first batch. Otherwise all runs of a worker would
 * advance in lockstep, and Node and the database would alternate instead of working in parallel.
 */
import type { Runtime } from "../../runtime/runtime.js";

interface PendingReceipt<T> {
  readonly receive: (receipt: T) => void;
  readonly receipt: T;
}

/**
 * The limits of a batch: smaller batches would cause more and smaller flushes, larger ones would leave the database
 * idle.
 */
const minBatchSize = 32;
const maxBatchSize = 128;
/** How long receipts are delivered in one turn of the event loop; a store that commits without I/O could starve it. */
const maxTickMs = 4;

export class AckScheduler {
  readonly #runtime: Runtime;
  #pendingReceipts: PendingReceipt<any>[] = [];
  #isDelivering = false;
  /** When the first receipts of the current turn of the event loop were delivered; null: none were. */
  #tickStartedAt: number | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  add<T>(receive: (receipt: T) => void, receipt: T): void {
    this.#pendingReceipts.push({ receive, receipt });
  }

  /** @param hasFlushWaiting whether writes are queued; if so, their flush is sent before any receipt is delivered */
  deliver(hasFlushWaiting: boolean): void {
    if (this.#isDelivering || this.#pendingReceipts.length === 0) return;
    this.#isDelivering = true;
    if (hasFlushWaiting || this.#isTickUsedUp()) this.#runtime.setImmediate(this.#next);
    else this.#next();
  }

  /**
   * If the time is used up, the receipts of all runs are delivered in the next turn, so that the runs still share
   * commits.
   */
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
    const half = Math.ceil(this.#pendingReceipts.length / 2);
    const batch = this.#pendingReceipts.splice(0, Math.min(Math.max(half, minBatchSize), maxBatchSize));
    for (const { receive, receipt } of batch) receive(receipt);
    if (this.#pendingReceipts.length > 0) this.#runtime.setImmediate(this.#next);
    else this.#isDelivering = false;
  };
}
