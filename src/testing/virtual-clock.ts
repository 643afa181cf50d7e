import { systemRuntime } from "../runtime/system.js";

/** A clock that moves only when it is told to. It begins at the real time, so that dates look familiar. */
export class VirtualClock {
  #now: number;

  constructor(start: Date | number = systemRuntime.now()) {
    this.#now = Math.floor(Number(start));
  }

  /** For `connect(url, { clock: clock.read })`. */
  readonly read = (): number => this.#now;

  get now(): Date {
    return new Date(this.#now);
  }

  /** Time does not run backwards. */
  moveTo(instant: number): void {
    if (instant > this.#now) this.#now = instant;
  }
}
