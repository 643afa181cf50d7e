/** The runtime of a real process, whose timers a test can count, and fire before their time. */
import type { Runtime, Timer } from "../../src/runtime/runtime.js";
import { systemRuntime } from "../../src/runtime/system.js";

class WatchedTimer implements Timer {
  readonly ms: number;
  readonly real: Timer;
  readonly fire: () => void;

  constructor(ms: number, real: Timer, fire: () => void) {
    this.ms = ms;
    this.real = real;
    this.fire = fire;
  }

  unref(): this {
    this.real.unref();
    return this;
  }
}

export class WatchedRuntime implements Runtime {
  readonly now = systemRuntime.now;
  /** If it is set, the monotonic clock stands still there. */
  stoppedAt: number | null = null;
  readonly monotonic = () => this.stoppedAt ?? systemRuntime.monotonic();
  readonly processMonotonic = systemRuntime.processMonotonic;
  readonly random = systemRuntime.random;
  readonly randomBytes = systemRuntime.randomBytes;
  readonly setImmediate = systemRuntime.setImmediate;
  readonly #pending = new Set<WatchedTimer>();
  readonly #intervals = new Set<WatchedTimer>();
  /** How many timeouts have fired. */
  firedCount = 0;

  /** How many timers are set, or only those with this delay. */
  pendingCount(ms?: number): number {
    return [...this.#pending].filter((timer) => ms === undefined || timer.ms === ms).length;
  }

  /** Fires all timers with this delay now, as if their time had come. */
  fire(ms: number): void {
    for (const timer of [...this.#pending]) if (timer.ms === ms) timer.fire();
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const fire = () => {
      this.firedCount += 1;
      this.clearTimeout(timer);
      callback();
    };
    const timer: WatchedTimer = new WatchedTimer(ms, systemRuntime.setTimeout(fire, ms), fire);
    this.#pending.add(timer);
    return timer;
  }

  setInterval(callback: () => void, ms: number): Timer {
    const timer = new WatchedTimer(ms, systemRuntime.setInterval(callback, ms), callback);
    this.#pending.add(timer);
    this.#intervals.add(timer);
    return timer;
  }

  /** Stops all intervals for good. */
  stopIntervals(): void {
    for (const timer of this.#intervals) this.clearInterval(timer);
  }

  clearTimeout(timer: Timer | null | undefined): void {
    if (!(timer instanceof WatchedTimer)) return;
    this.#pending.delete(timer);
    systemRuntime.clearTimeout(timer.real);
  }

  clearInterval(timer: Timer | null | undefined): void {
    if (!(timer instanceof WatchedTimer)) return;
    this.#pending.delete(timer);
    systemRuntime.clearInterval(timer.real);
  }
}
