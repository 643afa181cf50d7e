/** What a user writes to say when a schedule fires, and its translation to the data that is stored. */
import { InvalidInputError } from "../errors/errors.js";
import { type Duration, parseDuration } from "../naming/duration.js";
import { parseCron } from "./cron.js";
import { isDay, isExistingDay } from "./day.js";
import { nextInstant } from "./instants.js";
import { parseInstant } from "./parse-instant.js";
import { checkTimeZone } from "./time-zone-name.js";
import { FIRST_INSTANT, type ScheduleRule, type ScheduleTiming } from "./timing.js";
import { shown } from "./words.js";

export type { ScheduleTiming } from "./timing.js";

/** When a schedule fires: exactly one of `cron`, `every` and `at`, and what limits it. */
export interface ScheduleTimingOptions {
  /**
   * A cron expression of five fields: minute, hour, day of month, month, day of week. Or `@hourly`, `@daily`, `@midnight`, `@weekly`,
   * `@monthly`, `@yearly`, `@annually`.
   *
   * Names (`JAN`, `MON`), ranges, also round the end (`FRI-MON`), steps, lists, `?` for any day, `L`, `L-3`, `15W`, `LW`, `FRI#2` and
   * `FRI#L` are known. If day of month and day of week are both restricted, one of them is enough: `0 0 13 * FRI` is each 13th and
   * each Friday. As in Vixie's cron, a field that begins with `*` is not restricted even if a step follows, and then both must match.
   */
  readonly cron?: string;
  /** The IANA name of the zone in which the cron expression is read. Default: `"UTC"`, never the zone of the machine. */
  readonly timeZone?: string;
  /**
   * What becomes of a fixed time (the hour field has no `*` and no step) that does not exist on the day the clocks go forward:
   * `"shift"` (default) to the first instant after the gap, or `"skip"`. Other expressions never fire in a gap.
   */
  readonly gap?: "shift" | "skip";
  /** Which one of a fixed time that exists twice on the day the clocks go back. Default: `"first"`. Other expressions take both. */
  readonly repeat?: "first" | "second" | "both";
  /** A period of at least one second, counted from the Unix epoch, so it does not depend on when the schedule was made. */
  readonly every?: Duration;
  /** Moves the instants of `every`; less than the period. */
  readonly offset?: Duration;
  /** Dates, or ISO texts with their zone. */
  readonly at?: readonly (Date | string)[];
  /** The schedule does not fire before it. */
  readonly startAt?: Date | string;
  /** The schedule does not fire after it. */
  readonly endAt?: Date | string;
  /**
   * When the schedule does not fire: at the minutes that a cron expression matches (`"* * 24-26 12 *"`), on a day (`"2026-12-25"`), or
   * at an instant. Expressions and days are meant in `timeZone`, and in UTC with `every` and `at`.
   */
  readonly except?: readonly (string | Date)[];
}

const MAX_ENTRIES = 1_000;

/**
 * @param owner names the schedule, such as `schedule "nightly_report"`; each error begins with it
 * @throws InvalidInputError
 */
export function parseTiming(owner: string, options: ScheduleTimingOptions): ScheduleTiming {
  const subject = owner.charAt(0).toUpperCase() + owner.slice(1);
  const timing = {
    rule: parseRule(subject, options),
    startAt: options.startAt === undefined ? null : parseInstant(subject, "startAt", options.startAt),
    endAt: options.endAt === undefined ? null : parseInstant(subject, "endAt", options.endAt),
    except: parseExceptions(subject, options.except ?? []),
  };
  const { startAt, endAt } = timing;
  if (startAt !== null && endAt !== null && endAt < startAt)
    throw new InvalidInputError(`${subject} never fires: its endAt is before its startAt.`);
  if (nextInstant(timing, FIRST_INSTANT - 1) === null)
    throw new InvalidInputError(
      `${subject} never fires: no instant of its ${timing.rule.kind} is left by startAt, endAt and except.`,
    );
  return timing;
}

function parseRule(subject: string, options: ScheduleTimingOptions): ScheduleRule {
  const { cron, every, at } = options;
  const given = Object.entries({ cron, every, at }).filter(([, value]) => value !== undefined);
  const [first, second] = given.map(([name]) => name);
  if (first === undefined)
    throw new InvalidInputError(
      `${subject} does not say when it fires; give it cron: "30 2 * * *", every: "45m" or at: [dates].`,
    );
  if (second !== undefined)
    throw new InvalidInputError(`${subject} has both ${first} and ${second}; it takes one of cron, every and at.`);

  if (cron === undefined) refuseOptionsOf("cron", first, subject, options, ["timeZone", "gap", "repeat"]);
  if (every === undefined) refuseOptionsOf("every", first, subject, options, ["offset"]);
  if (cron !== undefined) return parseCronRule(subject, cron, options);
  if (every !== undefined) return parseEvery(subject, every, options.offset ?? 0);
  return { kind: "at", instants: parseDates(subject, at) };
}

function refuseOptionsOf(
  kind: string,
  actualKind: string,
  subject: string,
  options: ScheduleTimingOptions,
  names: readonly (keyof ScheduleTimingOptions)[],
): void {
  const name = names.find((option) => options[option] !== undefined);
  if (name === undefined) return;
  const reason = name === "timeZone" ? `; ${actualKind} does not depend on a zone` : "";
  throw new InvalidInputError(`${subject} has ${name} with ${actualKind}, but ${name} belongs to ${kind}${reason}.`);
}

function parseCronRule(subject: string, cron: unknown, options: ScheduleTimingOptions): ScheduleRule {
  if (typeof cron !== "string")
    throw new InvalidInputError(`${subject} takes cron as a text such as "30 2 * * *", not as ${shown(cron)}.`);
  parseCron(cron, subject);
  const gap = oneOf(subject, "gap", options.gap, ["shift", "skip"]);
  const repeat = oneOf(subject, "repeat", options.repeat, ["first", "second", "both"]);
  return {
    kind: "cron",
    cron: tidy(cron),
    timeZone: options.timeZone === undefined ? "UTC" : checkTimeZone(subject, options.timeZone),
    ...(gap === "skip" && { gap }),
    ...(repeat !== undefined && repeat !== "first" && { repeat }),
  };
}

function tidy(cron: string): string {
  return cron.trim().replace(/\s+/g, " ");
}

function oneOf<const Value extends string>(
  subject: string,
  option: string,
  value: Value | undefined,
  allowed: readonly Value[],
): Value | undefined {
  if (value === undefined || allowed.includes(value)) return value;
  const list = allowed.map((word) => JSON.stringify(word)).join(" or ");
  throw new InvalidInputError(`${subject} has ${shown(value)} as its ${option}, which is ${list}.`);
}

function parseEvery(subject: string, every: Duration, offset: Duration): ScheduleRule {
  const everyMs = parseSetting(subject, "every", every);
  const offsetMs = parseSetting(subject, "offset", offset);
  if (everyMs < 1000)
    throw new InvalidInputError(`${subject} has an every of ${everyMs} ms; the shortest period is one second.`);
  if (offsetMs >= everyMs)
    throw new InvalidInputError(
      `${subject} has an offset of ${offsetMs} ms, which must be less than every (${everyMs} ms).`,
    );
  return { kind: "every", everyMs, offsetMs };
}

function parseSetting(subject: string, name: string, duration: Duration): number {
  try {
    return parseDuration(duration, name);
  } catch (error) {
    // So that this sentence, too, begins with the schedule.
    const sentence = (error as Error).message;
    throw new InvalidInputError(`${subject}: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`);
  }
}

function parseDates(subject: string, dates: unknown): number[] {
  const instants = listOf(subject, "at", dates).map((date, index) => parseInstant(subject, `at[${index}]`, date));
  if (instants.length === 0)
    throw new InvalidInputError(`${subject} has no date in at, so it never fires; give it at least one.`);
  return [...new Set(instants)].sort((a, b) => a - b);
}

function parseExceptions(subject: string, except: unknown): (string | number)[] {
  const parsed = listOf(subject, "except", except).map((entry, index): string | number => {
    const option = `except[${index}]`;
    if (typeof entry !== "string" || /^\s*\d{4}-/.test(entry)) return parseDayOrInstant(subject, option, entry);
    parseCron(entry, `${subject}, in ${option},`);
    return tidy(entry);
  });
  return [...new Set(parsed)];
}

function parseDayOrInstant(subject: string, option: string, entry: unknown): string | number {
  const day = typeof entry === "string" ? entry.trim() : "";
  if (!isDay(day)) return parseInstant(subject, option, entry);
  if (isExistingDay(day)) return day;
  throw new InvalidInputError(`${subject} has the day ${JSON.stringify(day)} in ${option}, which does not exist.`);
}

function listOf(subject: string, option: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value))
    throw new InvalidInputError(`${subject} takes ${option} as a list, not as ${shown(value)}.`);
  if (value.length > MAX_ENTRIES)
    throw new InvalidInputError(`${subject} has ${value.length} entries in ${option}; the most is ${MAX_ENTRIES}.`);
  return value;
}
