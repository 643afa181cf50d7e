import { InvalidInputError } from "../errors/request-errors.js";

/**
 * A length of time: `"2 days"`, `"1h 30m"`, `"250ms"`, a number of milliseconds, or `{ days: 2 }`.
 *
 * Units in text: `ms`, `s`/`sec`, `m`/`min`, `h`/`hr`, `d`, `w`, and their full names, singular or plural.
 */
export type Duration =
  | string
  | number
  | {
      /** Added to the other fields. */
      readonly weeks?: number;
      /** Added to the other fields. */
      readonly days?: number;
      /** Added to the other fields. */
      readonly hours?: number;
      /** Added to the other fields. */
      readonly minutes?: number;
      /** Added to the other fields. */
      readonly seconds?: number;
      /** Added to the other fields. */
      readonly milliseconds?: number;
    };

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
export const MAX_DURATION_MS = 365_250 * DAY;

const UNITS: ReadonlyArray<{ ms: number; words: string }> = [
  { ms: 1, words: "ms msec msecs millisecond milliseconds" },
  { ms: SECOND, words: "s sec secs second seconds" },
  { ms: MINUTE, words: "m min mins minute minutes" },
  { ms: HOUR, words: "h hr hrs hour hours" },
  { ms: DAY, words: "d day days" },
  { ms: WEEK, words: "w wk wks week weeks" },
];
const UNIT_MS = new Map(UNITS.flatMap(({ ms, words }) => words.split(" ").map((word) => [word, ms] as const)));
const OBJECT_KEYS = new Set(["weeks", "days", "hours", "minutes", "seconds", "milliseconds"]);

/**
 * Parses a duration to whole milliseconds. A value that is not clearly a duration is refused, because a wait that is
 * silently zero or NaN would poll without a pause.
 *
 * @param settingName names the setting in the error message
 */
export function parseDuration(duration: Duration, settingName = "duration"): number {
  const ms = toMilliseconds(duration);
  if (typeof ms === "string") throw invalid(duration, settingName, ms);
  if (Number.isNaN(ms)) throw invalid(duration, settingName, "is not a number");
  if (ms < 0) throw invalid(duration, settingName, "is negative");
  if (ms > MAX_DURATION_MS) throw invalid(duration, settingName, "is longer than 1000 years");
  return Math.round(ms);
}

/** Returns milliseconds, or a text that describes why the value is no duration. */
function toMilliseconds(duration: unknown): number | string {
  if (typeof duration === "number") return duration;
  if (typeof duration === "string") return fromText(duration);
  if (typeof duration === "object" && duration !== null && !Array.isArray(duration)) return fromObject(duration);
  return "is not a duration";
}

function fromText(text: string): number | string {
  if (text.length > 100) return "is not a duration";
  const partPattern = /\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]+)\s*/iy;
  let ms = 0;
  do {
    const [, amount, word] = partPattern.exec(text) ?? [];
    if (amount === undefined || word === undefined) return "is not a duration";
    const unit = UNIT_MS.get(word.toLowerCase());
    if (unit === undefined) return `has an unknown unit ${JSON.stringify(word)}`;
    ms += Number(amount) * unit;
  } while (partPattern.lastIndex < text.length);
  return ms;
}

function fromObject(parts: object): number | string {
  if (parts instanceof Date)
    return "is a point in time, not a length of time (for a date there are sleepUntil(name, date) and startAt)";
  const entries = Object.entries(parts);
  if (entries.length === 0) return "is empty";
  let ms = 0;
  for (const [key, amount] of entries) {
    if (!OBJECT_KEYS.has(key)) return `has an unknown unit ${JSON.stringify(key)}`;
    if (typeof amount !== "number" || Number.isNaN(amount)) return `has ${key} that is not a number`;
    if (amount < 0) return `has negative ${key}`;
    ms += amount * (UNIT_MS.get(key) ?? Number.NaN);
  }
  return ms;
}

function invalid(duration: unknown, settingName: string, problem: string): InvalidInputError {
  const subject = settingName.includes(" ") ? `${settingName}, ${show(duration)},` : `${settingName} ${show(duration)}`;
  return new InvalidInputError(
    `The ${subject} ${problem}; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.`,
  );
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "(a Date)" : value.toISOString();
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "[…]" : `{ ${Object.keys(value)} }`;
  return typeof value === "function" || typeof value === "symbol" ? `(a ${typeof value})` : String(value);
}

/** A duration for display, in its two largest units: `"2 days"`, `"1h 30m"`, `"1.5s"`, `"250ms"`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (Math.round(ms) < SECOND) return `${Math.round(ms)}ms`;
  if (ms < 10 * SECOND) return `${Math.round(ms / 100) / 10}s`;

  const precision = ms >= DAY ? HOUR : ms >= HOUR ? MINUTE : SECOND;
  const rounded = Math.round(ms / precision) * precision;
  // Formatted again after rounding, because 23h 59m 59s is rounded to 24h, which is shown as "1 day".
  if (rounded !== ms) return formatDuration(rounded);

  const days = Math.floor(ms / DAY);
  const hours = Math.floor((ms % DAY) / HOUR);
  const minutes = Math.floor((ms % HOUR) / MINUTE);
  const seconds = Math.floor((ms % MINUTE) / SECOND);
  return [
    days > 0 ? `${days} ${days === 1 ? "day" : "days"}` : "",
    hours > 0 ? `${hours}h` : "",
    minutes > 0 ? `${minutes}m` : "",
    seconds > 0 ? `${seconds}s` : "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}
