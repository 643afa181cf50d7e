/** Times of a day on the clock, to the minute. */

const MINUTES_PER_DAY = 1440;

/** A set of minutes; the minute after midnight is 0. */
export class DayTimes {
  readonly #has: Uint8Array;
  /** For each minute and for the end of the day, the first one in the set that is not before it; -1 if there is none. */
  readonly #next = new Int16Array(MINUTES_PER_DAY + 1).fill(-1);

  /** @param has 1 for each minute in the set */
  private constructor(has: Uint8Array) {
    this.#has = has;
    for (let minute = MINUTES_PER_DAY - 1; minute >= 0; minute--)
      this.#next[minute] = has[minute] === 1 ? minute : (this.#next[minute + 1] as number);
  }

  static of(hours: readonly number[], minutes: readonly number[]): DayTimes {
    const has = new Uint8Array(MINUTES_PER_DAY);
    for (const hour of hours) for (const minute of minutes) has[hour * 60 + minute] = 1;
    return new DayTimes(has);
  }

  has(minute: number): boolean {
    return this.#has[minute] === 1;
  }

  /** The first minute in the set that is not before this one; -1 if there is none. */
  nextFrom(minute: number): number {
    return this.#next[minute] as number;
  }

  /** The times that are in none of the others. */
  without(others: readonly DayTimes[]): DayTimes {
    return new DayTimes(this.#has.map((has, minute) => (others.some((other) => other.has(minute)) ? 0 : has)));
  }
}
