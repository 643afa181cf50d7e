/** What a user writes to say when a schedule fires, and its translation to the data that is stored. */
import { InvalidInputError } from "../errors/errors.js";
import type { Duration } from "../naming/duration.js";
import type { ScheduleTiming } from "./timing.js";

export type { ScheduleRule, ScheduleTiming } from "./timing.js";

/** When a schedule fires: exactly one of `cron`, `every` and `at`, and what limits it. */
export interface ScheduleTimingOptions {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly gap?: "shift" | "skip";
  readonly repeat?: "first" | "second" | "both";
  readonly every?: Duration;
  readonly offset?: Duration;
  readonly at?: readonly (Date | string)[];
  readonly startAt?: Date | string;
  readonly endAt?: Date | string;
  readonly except?: readonly (string | Date)[];
}

/**
 * @param owner names the schedule, such as `schedule "nightly_report"`; each error begins with it
 * @throws InvalidInputError
 */
export function parseTiming(owner: string, options: ScheduleTimingOptions): ScheduleTiming {
  throw new InvalidInputError(`${owner}: ${Object.keys(options)} cannot be parsed yet.`);
}
