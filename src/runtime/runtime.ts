/**
 * The only source of time and randomness. Every clock, timer and random number of the library comes from a `Runtime` that
 * the composition root (`connect.ts`) passes in, so that a test or a simulation can control time and the order of callbacks. `npm run
 * check` rejects `Date.now`, `Math.random`, `setTimeout` and the like outside of `src/runtime`.
 */

/** The timer that `setTimeout` and `setInterval` return. */
export interface Timer {
  /** Lets the process exit although the timer is still pending. */
  unref(): this;
}

export interface Runtime {
  /** The wall clock of this process, in epoch milliseconds. */
  now(): number;
  /** A clock in fractional milliseconds that never goes backwards. Its values are comparable only within one runtime. */
  monotonic(): number;
  /**
   * Like `monotonic`, but comparable between all threads of a process; `performance.now()` starts at zero in each thread.
   */
  processMonotonic(): number;
  /** A random number from 0 up to, but not including, 1. */
  random(): number;
  /** Cryptographically secure random bytes, for ids. */
  randomBytes(count: number): Uint8Array;
  /**
   * Calls back once after `ms` milliseconds, but never later than after 24.8 days (`maxTimerMs`). A caller with a longer
   * delay must compare the clock in the callback and set another timer.
   */
  setTimeout(callback: () => void, ms: number): Timer;
  clearTimeout(timer: Timer | null | undefined): void;
  setInterval(callback: () => void, ms: number): Timer;
  clearInterval(timer: Timer | null | undefined): void;
  /** Calls back after all callbacks that are due now, microtasks included, have run. */
  setImmediate(callback: () => void): void;
}

/** The longest delay of a Node timer, 24.8 days. With a longer delay, Node's `setTimeout` would fire at once. */
export const maxTimerMs = 2_147_483_647;
