/**
 * A simulated process: its own clock, timers, immediates and random numbers. After a crash nothing of it runs any more, like a process that was
 * killed; its promises never settle.
 */
import type { Runtime, Timer } from "../../../src/runtime/runtime.js";
import type { Random } from "./random.js";
import type { Process, ScheduledEvent, Scheduler } from "./scheduler.js";

/** The instant at which simulated time is 0. */
export const epochMs = Date.UTC(2026, 0, 1);

interface SimTimer extends Timer {
  event: ScheduledEvent | null;
}

export class SimProcess implements Process {
  readonly name: string;
  readonly runtime: Runtime;
  isAlive = true;
  frozenUntil = 0;
  /** How far the wall clock of this process is from that of the database. No promise depends on it. */
  skewMs = 0;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #startedAt: number;
  readonly #immediates: (() => void)[] = [];
  #isImmediateScheduled = false;
  #timerCount = 0;

  constructor(name: string, scheduler: Scheduler, random: Random) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#random = random;
    this.#startedAt = scheduler.now;
    this.runtime = {
      now: () => epochMs + Math.floor(scheduler.now + this.skewMs),
      monotonic: () => scheduler.now - this.#startedAt,
      processMonotonic: () => scheduler.now - this.#startedAt,
      random: () => random.next(),
      randomBytes: (count) => Uint8Array.from({ length: count }, () => random.int(0, 255)),
      setTimeout: (callback, ms) => this.#setTimeout(callback, ms),
      clearTimeout: (timer) => this.#clear(timer),
      setInterval: (callback, ms) => this.#setInterval(callback, ms),
      clearInterval: (timer) => this.#clear(timer),
      setImmediate: (callback) => this.#setImmediate(callback),
    };
  }

  /** Timers that are set and have not fired. */
  get pendingTimers(): number {
    return this.#timerCount;
  }

  crash(): void {
    this.isAlive = false;
  }

  /** The process stands still, as after SIGSTOP, and goes on later with all that it was waiting for. */
  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.#scheduler.now + ms);
  }

  thaw(): void {
    this.frozenUntil = 0;
  }

  #setTimeout(callback: () => void, ms: number): SimTimer {
    const timer = this.#createTimer();
    this.#timerCount += 1;
    timer.event = this.#scheduler.schedule(this, timerDelay(ms), "timer", () => {
      timer.event = null;
      this.#timerCount -= 1;
      callback();
    });
    return timer;
  }

  #setInterval(callback: () => void, ms: number): SimTimer {
    const timer = this.#createTimer();
    this.#timerCount += 1;
    const plan = () => {
      timer.event = this.#scheduler.schedule(this, timerDelay(ms), "interval", () => {
        plan();
        callback();
      });
    };
    plan();
    return timer;
  }

  #createTimer(): SimTimer {
    const timer: SimTimer = { event: null, unref: () => timer };
    return timer;
  }

  #clear(timer: Timer | null | undefined): void {
    const event = (timer as SimTimer | null | undefined)?.event ?? null;
    if (event === null) return;
    event.isCanceled = true;
    (timer as SimTimer).event = null;
    this.#timerCount -= 1;
  }

  /** Immediates run in the order in which they were set, one per event; other processes may run in between. */
  #setImmediate(callback: () => void): void {
    this.#immediates.push(callback);
    if (!this.#isImmediateScheduled) this.#scheduleImmediate();
  }

  #scheduleImmediate(): void {
    this.#isImmediateScheduled = true;
    this.#scheduler.schedule(this, this.#random.next() * 0.02, "immediate", () => {
      const callback = this.#immediates.shift() as () => void;
      this.#isImmediateScheduled = false;
      if (this.#immediates.length > 0) this.#scheduleImmediate();
      callback();
    });
  }
}

/** Like the timers of Node: at least a millisecond, at most 24.8 days. */
function timerDelay(ms: number): number {
  if (Number.isNaN(ms)) throw new Error("A timer was set for NaN milliseconds.");
  return Math.min(2_147_483_647, Math.max(1, ms));
}
