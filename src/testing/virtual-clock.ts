import { systemRuntime } from "../runtime/system.js";

/**
 * A clock that moves only when you move it. It starts at the real time, unless you give it another.
 *
 * @example
 * ```ts
 * const clock = new VirtualClock(new Date("2025-01-01"));
 * const pawl = await connect("memory:", { clock: clock.read });
 * ```
 */
export class VirtualClock {
  #now: number;

  constructor(start: Date | number = systemRuntime.now()) {
    this.#now = Math.floor(Number(start));
  }

  /** The time in epoch milliseconds, as the option `clock` of `connect` takes it. */
  readonly read = (): number => this.#now;

  /** The time as a date. */
  get now(): Date {
    return new Date(this.#now);
  }

  /** Moves the clock forward to this instant in epoch milliseconds; an earlier instant is ignored. */
  moveTo(instant: number): void {
    if (instant > this.#now) this.#now = instant;
  }
}
