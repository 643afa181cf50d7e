/**
 * Measures how late the timers of this process fire. Code that computes for a long time without awaiting anything delays
 * every run, heartbeat and request of its process, and people find such code by the delay.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** Short enough that a block of a fifth of a second is seen, and long enough that an idle process stays idle. */
const tickMs = 100;

export class LoopLag {
  readonly #runtime: Runtime;
  readonly #timer: Timer;
  #lastTickAt: number;
  #maxMs = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#lastTickAt = runtime.monotonic();
    this.#timer = runtime.setInterval(() => this.#measure(), tickMs).unref();
  }

  /** Returns the longest delay since the previous call, in whole milliseconds. */
  takeMaxMs(): number {
    // After a block, the caller's timer may fire before the one of this class.
    this.#measure();
    const maxMs = Math.round(this.#maxMs);
    this.#maxMs = 0;
    return maxMs;
  }

  stop(): void {
    this.#runtime.clearInterval(this.#timer);
  }

  #measure(): void {
    const now = this.#runtime.monotonic();
    this.#maxMs = Math.max(this.#maxMs, now - this.#lastTickAt - tickMs);
    this.#lastTickAt = now;
  }
}
