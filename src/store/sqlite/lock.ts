/** Waiting without blocking the event loop: for this process' turn to write, and for other processes' locks. */
import { StoreError } from "../../core/errors.js";
import { isBusy } from "./errors.js";

/** First come, first served. Taken when free without a tick in between. */
export class Mutex {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  /** Undefined when it was free: the caller has it and goes on at once. */
  acquire(): Promise<void> | undefined {
    if (this.#held) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#held = true;
    return undefined;
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#held = false;
    else next();
  }
}

/** How long SQLite itself may sleep for a lock, with the event loop standing still. */
export const busyTimeoutMs = 5;
const patienceMs = 30_000;
const longestPauseMs = 25;

/**
 * Calls `work`, a whole transaction, until no other process is in its way. Pauses are random so that several waiting
 * processes do not come back at the same instant.
 */
export async function whileBusy<T>(work: () => T, description: string): Promise<T> {
  for (let pauseMs = 1, waitedSince: number | null = null; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      const now = performance.now();
      waitedSince ??= now;
      if (now - waitedSince > patienceMs) {
        const message = `${description} was locked by others for ${patienceMs / 1000} s; is a transaction left open?`;
        throw new StoreError(message, { transient: true, cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * pauseMs));
    }
  }
}
