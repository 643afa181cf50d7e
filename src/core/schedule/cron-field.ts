/** Reads one field of a cron expression. */
import { InvalidInputError } from "../errors/errors.js";
import { didYouMean } from "../naming/nearest-word.js";

/** One element of the list that a field is. */
export type CronItem =
  /** From `from` to `to`, every `step`; `to` is less than `from` where the range goes round the end, such as FRI-MON. */
  | {
      readonly kind: "range";
      readonly from: number;
      readonly to: number;
      readonly step: number;
    }
  /** `L`: the last day of the month; `L-3`: three days earlier. */
  | { readonly kind: "lastDay"; readonly daysBefore: number }
  /** `15W`: the day from Monday to Friday that is nearest to the 15th, in the same month; `LW`: the last one of the month. */
  | { readonly kind: "nearestWorkday"; readonly day: number | "last" }
  /** `FRI#2`: the second Friday of the month; `FRIL` or `FRI#L`: the last one. */
  | { readonly kind: "nthDayOfWeek"; readonly dayOfWeek: number; readonly nth: number | "last" };

export interface CronField {
  readonly items: readonly CronItem[];
  /** The field begins with `*` or `?`, perhaps with a step. */
  readonly beginsWithStar: boolean;
  /** There is a `*` or a step somewhere in the field. */
  readonly hasStarOrStep: boolean;
}

export interface FieldKind {
  readonly name: "minute" | "hour" | "day-of-month" | "month" | "day-of-week";
  readonly min: number;
  /** The largest number of which the field has its own meaning. */
  readonly max: number;
  /** The largest number that may be written: 7 is Sunday, as 0 is. */
  readonly maxWritten: number;
  /** The names of `min`, `min + 1` and so on. */
  readonly words: readonly string[];
  readonly allowed: string;
}

const MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
const DAYS_OF_WEEK = "SUN MON TUE WED THU FRI SAT".split(" ");

export const FIELD_KINDS: readonly [FieldKind, FieldKind, FieldKind, FieldKind, FieldKind] = [
  { name: "minute", min: 0, max: 59, maxWritten: 59, words: [], allowed: "a minute is 0 to 59" },
  { name: "hour", min: 0, max: 23, maxWritten: 23, words: [], allowed: "an hour is 0 to 23" },
  {
    name: "day-of-month",
    min: 1,
    max: 31,
    maxWritten: 31,
    words: [],
    allowed: "a day of the month is 1 to 31, L (the last), L-3, 15W (the nearest day from Monday to Friday) or LW",
  },
  { name: "month", min: 1, max: 12, maxWritten: 12, words: MONTHS, allowed: "a month is 1 to 12 or JAN to DEC" },
  {
    name: "day-of-week",
    min: 0,
    max: 6,
    maxWritten: 7,
    words: DAYS_OF_WEEK,
    allowed: "a day of the week is 0 to 7 or SUN to SAT, FRI#2 (the second of the month) or FRI#L (the last)",
  },
];

/** Where a field is, for errors. */
export interface CronPlace {
  /** The beginning of the sentence: `Schedule "nightly_report"`. */
  readonly subject: string;
  /** The whole expression. */
  readonly cron: string;
}

export function parseField(kind: FieldKind, text: string, where: CronPlace): CronField {
  const hasDays = kind.name === "day-of-month" || kind.name === "day-of-week";
  if (text === "?" && hasDays) return { items: [any(kind)], beginsWithStar: true, hasStarOrStep: true };
  return {
    items: text.split(",").map((part) => parseItem(kind, part, where)),
    beginsWithStar: text.startsWith("*"),
    hasStarOrStep: /[*/]/.test(text),
  };
}

/** The numbers in a field, sorted and without duplicates; days that differ from month to month have none. */
export function numbersOf(kind: FieldKind, field: CronField): number[] {
  const values = field.items.flatMap((item) => (item.kind === "range" ? valuesOf(kind, item) : []));
  return [...new Set(values)].sort((a, b) => a - b);
}

function valuesOf(kind: FieldKind, { from, to, step }: Extract<CronItem, { kind: "range" }>): number[] {
  const count = kind.max - kind.min + 1;
  const end = to < from ? to + count : to;
  const values: number[] = [];
  for (let value = from; value <= end; value += step) values.push(((value - kind.min) % count) + kind.min);
  return values;
}

function parseItem(kind: FieldKind, part: string, where: CronPlace): CronItem {
  const item = parseSpecialDay(kind, part, where);
  if (item !== null) return item;

  const [base = "", stepText, ...rest] = part.split("/");
  if (rest.length > 0) throw refused(kind, part, where);
  const step = stepText === undefined ? 1 : parseStep(kind, part, stepText, where);
  if (base === "*") return { ...any(kind), step };
  const [first = "", last, ...others] = base.split("-");
  if (others.length > 0) throw refused(kind, part, where);
  const from = parseValue(kind, first, part, where);
  if (last !== undefined) return { kind: "range", from, to: parseValue(kind, last, part, where), step };
  if (stepText === undefined) return { kind: "range", from, to: from, step };
  // As in Quartz: 5/15 begins at 5 and goes on to the end of the range.
  return { kind: "range", from: from > kind.max ? kind.min : from, to: kind.max, step };
}

function any(kind: FieldKind): Extract<CronItem, { kind: "range" }> {
  return { kind: "range", from: kind.min, to: kind.max, step: 1 };
}

/** The forms that mean another day in each month; null if the text is none of them. */
function parseSpecialDay(kind: FieldKind, part: string, where: CronPlace): CronItem | null {
  if (kind.name === "day-of-month") {
    const [, daysBefore] = /^L(?:-(\d+))?$/i.exec(part) ?? [];
    if (daysBefore !== undefined && !(Number(daysBefore) <= 30)) throw refused(kind, part, where);
    if (/^L(?:-\d+)?$/i.test(part)) return { kind: "lastDay", daysBefore: Number(daysBefore ?? 0) };
    if (/^LW$/i.test(part)) return { kind: "nearestWorkday", day: "last" };
    const [, day] = /^(\d+)W$/i.exec(part) ?? [];
    return day === undefined ? null : { kind: "nearestWorkday", day: parseValue(kind, day, part, where) };
  }
  if (kind.name === "day-of-week") {
    // The name of no day ends with L, so an L at the end is the mark of the last one.
    const [, day, nth] = /^([^#]+)#(.*)$/.exec(part) ?? /^([^#]+)(L)$/i.exec(part) ?? [];
    if (day === undefined || nth === undefined) return null;
    if (!/^(?:[1-5]|L)$/i.test(nth)) throw refused(kind, part, where, "a month has at most five of each day, #1 to #5");
    const dayOfWeek = parseValue(kind, day, part, where) % 7;
    return { kind: "nthDayOfWeek", dayOfWeek, nth: /^L$/i.test(nth) ? "last" : Number(nth) };
  }
  return null;
}

function parseStep(kind: FieldKind, part: string, text: string, where: CronPlace): number {
  const count = kind.max - kind.min + 1;
  const step = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (step >= 1 && step <= count) return step;
  const unit = { minute: "m", hour: "h" }[kind.name as string];
  const instead = step > count && unit !== undefined ? `; for a longer period write every: "${step}${unit}"` : "";
  throw refused(kind, part, where, `the step behind "/" is 1 to ${count}${instead}`);
}

function parseValue(kind: FieldKind, text: string, part: string, where: CronPlace): number {
  const word = kind.words.indexOf(text.toUpperCase());
  if (word >= 0) return kind.min + word;
  const value = /^\d{1,4}$/.test(text) ? Number(text) : -1;
  if (value >= kind.min && value <= kind.maxWritten) return value;
  throw refused(kind, part, where, `${kind.allowed}${suggestion(kind, text)}`);
}

function suggestion(kind: FieldKind, text: string): string {
  const word = text.toUpperCase();
  const beginning = kind.words.find((known) => word.startsWith(known));
  if (beginning !== undefined) return `; did you mean "${beginning}"?`;
  return /^[A-Z]+$/.test(word) ? didYouMean(word, kind.words) : "";
}

function refused(kind: FieldKind, part: string, where: CronPlace, why = kind.allowed): InvalidInputError {
  const written = part === "" ? "an empty part" : JSON.stringify(part);
  const sentence = `${where.subject} has ${written} in the ${kind.name} field of ${JSON.stringify(where.cron)}: ${why}`;
  return new InvalidInputError(sentence.endsWith("?") ? sentence : `${sentence}.`);
}
