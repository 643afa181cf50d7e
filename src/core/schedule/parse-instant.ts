/** Reads instants that users write. */
import { InvalidInputError } from "../errors/errors.js";
import { isDay, isExistingDay } from "./day.js";
import { FIRST_INSTANT, LAST_INSTANT } from "./timing.js";
import { shown } from "./words.js";

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?(\d\d))?$/i;

/**
 * A `Date`, or an ISO text with its zone. A text without one would mean another instant on each machine.
 *
 * @param subject the beginning of the error's sentence, such as `Schedule "nightly_report"`
 * @param option what the value was given for, such as `at[0]`
 */
export function parseInstant(subject: string, option: string, value: unknown): number {
  const refuse = (problem: string) =>
    new InvalidInputError(
      `${subject} has ${shown(value)} in ${option}, which ${problem}; write a Date or a text such as "2026-12-24T18:00:00Z" or "2026-12-24T18:00:00+01:00".`,
    );
  const instant =
    value instanceof Date
      ? value.getTime()
      : typeof value === "string"
        ? fromText(value.trim())
        : "is not a Date and not a text";
  if (typeof instant === "string") throw refuse(instant);
  if (Number.isNaN(instant)) throw refuse("is not a point in time");
  if (instant < FIRST_INSTANT || instant > LAST_INSTANT) throw refuse("is not in the years 1970 to 2200");
  return instant;
}

/** Returns the instant, or a text that describes why there is none. */
function fromText(text: string): number | string {
  const [match, year, month, day, hour, minute, second, fraction, utc, sign, offsetHours, offsetMinutes] =
    INSTANT.exec(text) ?? [];
  if (isDay(text)) return "has no time of day and no zone";
  if (match === undefined) return "is not a point in time";
  if (utc === undefined && sign === undefined) return "has no zone";
  const exists =
    isExistingDay(`${year}-${month}-${day}`) &&
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second ?? 0) < 60 &&
    Number(offsetHours ?? 0) < 24 &&
    Number(offsetMinutes ?? 0) < 60;
  if (!exists) return "is not a point in time";
  const local = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second ?? 0),
  );
  const offsetMs = (sign === "-" ? -60_000 : 60_000) * (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0));
  return local + Math.floor(Number(`0.${fraction ?? 0}`) * 1000) - offsetMs;
}
