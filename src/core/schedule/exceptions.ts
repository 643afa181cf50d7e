/** What a schedule leaves out, by the local time of an instant: expressions match its minute, days its date. */
import { type CronExpression, cronExpression } from "./cron.js";
import { DAY_MS, isDay } from "./day.js";
import type { DayTimes } from "./day-times.js";

/** A part of a day that an expression leaves out. */
interface ExceptedTimes {
  /** The index of the expression. */
  readonly index: number;
  readonly times: DayTimes;
}

export class Exceptions {
  readonly #instants: ReadonlySet<number>;
  readonly #days: ReadonlySet<number>;
  readonly #expressions: readonly CronExpression[];

  constructor(except: readonly (string | number)[]) {
    const texts = except.filter((entry) => typeof entry === "string");
    this.#instants = new Set(except.filter((entry) => typeof entry === "number"));
    this.#days = new Set(texts.filter(isDay).map((day) => Date.parse(`${day}T00:00:00Z`) / DAY_MS));
    this.#expressions = texts.filter((text) => !isDay(text)).map(cronExpression);
  }

  hasInstant(instant: number): boolean {
    return this.#instants.has(instant);
  }

  /** Whether days or expressions leave this time on the clock out (in milliseconds, as if it were UTC). */
  hasLocalTime(localMs: number): boolean {
    const day = Math.floor(localMs / DAY_MS);
    const minute = Math.floor((localMs - day * DAY_MS) / 60_000);
    return this.hasDay(day) || this.expressionsOn(day).some(({ times }) => times.has(minute));
  }

  /** Whether the whole day is left out. */
  hasDay(day: number): boolean {
    return this.#days.has(day);
  }

  expressionsOn(day: number): readonly ExceptedTimes[] {
    if (this.#expressions.length === 0) return NONE;
    const excepted: ExceptedTimes[] = [];
    this.#expressions.forEach(({ days, times }, index) => {
      if (days.has(day)) excepted.push({ index, times });
    });
    return excepted;
  }
}

const NONE: readonly ExceptedTimes[] = [];
