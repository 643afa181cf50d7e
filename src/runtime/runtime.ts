/**
 * The one seam to time and chance. Every clock, timer and random number of the library comes from a `Runtime` that the
 * composition root hands in (`connect.ts`), so that a test or a simulation can own the scheduler. `npm run check` refuses
 * `Date.now`, `Math.random`, `setTimeout` and their kind everywhere else.
 */

/** What `setTimeout` and `setInterval` return: a timer that need not keep the process alive. */
export interface Timer {
  unref(): this;
}

export interface Runtime {
  /** The wall clock of this process, in epoch milliseconds. */
  now(): number;
  /** Milliseconds that only grow, with fractions. Comparable only within one runtime. */
  monotonic(): number;
  /** Like `monotonic`, but it means the same in all threads of a process, which `performance.now()` does not. */
  processMonotonic(): number;
  /** A number from 0 up to, but not including, 1. */
  random(): number;
  /** Bytes that cannot be guessed, for ids. */
  randomBytes(count: number): Uint8Array;
  /** Calls back once, after `ms` milliseconds, or after 24.8 days if that is earlier: callers look at the clock again. */
  setTimeout(callback: () => void, ms: number): Timer;
  clearTimeout(timer: Timer | null | undefined): void;
  setInterval(callback: () => void, ms: number): Timer;
  clearInterval(timer: Timer | null | undefined): void;
  /** Calls back when everything that is due now has run, microtasks included. */
  setImmediate(callback: () => void): void;
}

/** The longest that a timer of Node can count, 24.8 days: beyond it, `setTimeout` would fire at once. */
export const maxTimerMs = 2_147_483_647;
