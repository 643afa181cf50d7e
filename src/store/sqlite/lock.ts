/** Waits for the write lock, within this process and between processes, without blocking the event loop. */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep, yieldToEventLoop } from "../../runtime/wait.js";
import { isBusy } from "./errors.js";

/** A mutex with a FIFO wait queue. A free mutex is acquired synchronously. */
export class Mutex {
  #isLocked = false;
  readonly #waiters: (() => void)[] = [];

  /** Returns undefined when the mutex was free; the caller has acquired it and need not await. */
  acquire(): Promise<void> | undefined {
    if (this.#isLocked) return new Promise((resolve) => this.#waiters.push(resolve));
    this.#isLocked = true;
    return undefined;
  }

  release(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#isLocked = false;
    else next();
  }
}

/** How long SQLite itself may wait for a lock. The event loop is blocked meanwhile. */
export const busyTimeoutMs = 2;
const maxLockWaitMs = 30_000;
/**
 * Short delays are fairer. Among four processes that commit continuously, delays of up to 25 ms gave one process five
 * times the throughput of another and a longest wait of 0.9 s; with up to 8 ms it was 0.4 s. After one second the lock
 * is held by a long transaction rather than by such a process, and longer delays suffice.
 */
const retryDelayMs = (waitedMs: number, random: number) => 1 + random * (waitedMs < 1_000 ? 7 : 24);

/**
 * Calls `work`, a whole transaction, until it no longer fails because another process has the lock. The delays are
 * random so that several waiting processes do not retry at the same instant.
 */
export async function retryWhileBusy<T>(work: () => T, description: string, runtime: Runtime): Promise<T> {
  for (let waitingSince: number | null = null; ; ) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      const now = runtime.monotonic();
      waitingSince ??= now;
      const waitedMs = now - waitingSince;
      if (waitedMs > maxLockWaitMs) {
        const message = `${description} was locked by another connection for ${maxLockWaitMs / 1000} s; look for a transaction that was left open.`;
        throw new StoreError(message, { transient: true, cause: error });
      }
      await sleep(runtime, retryDelayMs(waitedMs, runtime.random()));
    }
  }
}

/** How long the store may run statements before it yields to the event loop. */
const maxBlockingMs = 10;

/**
 * The drivers are synchronous, so a caller that awaits one commit after another runs in microtasks only, and timers
 * (such as heartbeats) and sockets would starve. This class yields to them every few milliseconds.
 */
export class EventLoopYielder {
  readonly #runtime: Runtime;
  #busySince: number | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Returns undefined when the caller may continue without awaiting. */
  yieldIfDue(): Promise<void> | undefined {
    if (this.#busySince === undefined) {
      this.#busySince = this.#runtime.monotonic();
      this.#runtime.setImmediate(() => {
        this.#busySince = undefined;
      });
      return undefined;
    }
    if (this.#runtime.monotonic() - this.#busySince < maxBlockingMs) return undefined;
    return yieldToEventLoop(this.#runtime);
  }
}
