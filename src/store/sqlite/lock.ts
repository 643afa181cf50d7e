/** Waiting without blocking the event loop: for this process' turn to write, and for other processes' locks. */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep, yieldToEventLoop } from "../../runtime/wait.js";
import { isBusy } from "./errors.js";

/** First come, first served. Taken when free without a tick in between. */
export class Mutex {
  #isLocked = false;
  readonly #waiters: (() => void)[] = [];

  /** Undefined when it was free: the caller has it and goes on at once. */
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

/** How long SQLite itself may sleep for a lock, with the event loop standing still. */
export const busyTimeoutMs = 2;
const maxLockWaitMs = 30_000;
/**
 * Short pauses are fair pauses: with up to 25 ms, of four processes that commit without end one got five times as much
 * as another, and 0.9 s was the longest wait; with 8 ms it was 0.4 s. Whoever blocks for a second is no such process.
 */
const retryDelayMs = (waitedMs: number, random: number) => 1 + random * (waitedMs < 1_000 ? 7 : 24);

/**
 * Calls `work`, a whole transaction, until no other process is in its way. Pauses are random so that several waiting
 * processes do not come back at the same instant.
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
        const message = `${description} was locked by others for ${maxLockWaitMs / 1000} s; is a transaction left open?`;
        throw new StoreError(message, { transient: true, cause: error });
      }
      await sleep(runtime, retryDelayMs(waitedMs, runtime.random()));
    }
  }
}

/** How long work may follow work without the event loop having had a turn. */
const maxBlockingMs = 10;

/**
 * The drivers answer at once, so callers that await one commit after another would keep timers (heartbeats!) and
 * sockets waiting for as long as they have work. This lets them have a turn now and then.
 */
export class EventLoopYielder {
  readonly #runtime: Runtime;
  #busySince: number | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Undefined: go on. */
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
