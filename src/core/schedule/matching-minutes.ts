/** The minutes on the clock that a cron expression matches and that are not excepted. Zones do not matter here. */
import type { CronExpression } from "./cron.js";
import { DAY_MS } from "./day.js";
import type { DayTimes } from "./day-times.js";
import type { Exceptions } from "./exceptions.js";

const MINUTE_MS = 60_000;
const MAX_KEPT_DAYS = 50;

export class MatchingMinutes {
  readonly #cron: CronExpression;
  readonly #exceptions: Exceptions | null;
  /** Days differ only in the expressions that except a part of them, so their times are kept by the indexes of these. */
  readonly #exceptedDays = new Map<string, DayTimes>();

  constructor(cron: CronExpression, exceptions: Exceptions | null) {
    this.#cron = cron;
    this.#exceptions = exceptions;
  }

  /**
   * The first minute that is not before the time. Times on the clock are counted in milliseconds, as if they were UTC. Null if
   * there is none until the end of 2200.
   */
  next(localMs: number): number | null {
    const earliest = Math.ceil(localMs / MINUTE_MS) * MINUTE_MS;
    const firstDay = Math.floor(earliest / DAY_MS);
    for (let day = this.#cron.days.nextFrom(firstDay); day !== null; day = this.#cron.days.nextFrom(day + 1)) {
      const minute = day === firstDay ? (earliest - day * DAY_MS) / MINUTE_MS : 0;
      const time = this.#timesOn(day)?.nextFrom(minute) ?? -1;
      if (time >= 0) return day * DAY_MS + time * MINUTE_MS;
    }
    return null;
  }

  /** Null if there are none. */
  #timesOn(day: number): DayTimes | null {
    if (this.#exceptions === null) return this.#cron.times;
    if (this.#exceptions.hasDay(day)) return null;
    const excepted = this.#exceptions.expressionsOn(day);
    if (excepted.length === 0) return this.#cron.times;
    const key = excepted.map(({ index }) => index).join();
    let times = this.#exceptedDays.get(key);
    if (times === undefined) {
      if (this.#exceptedDays.size >= MAX_KEPT_DAYS) this.#exceptedDays.clear();
      this.#exceptedDays.set(key, (times = this.#cron.times.without(excepted.map(({ times }) => times))));
    }
    return times;
  }
}
