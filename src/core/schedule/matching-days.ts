/** The days that the three fields of a cron expression for days match. Days are numbered from 1970-01-01, which is 0. */
import { type CronField, type CronItem, FIELD_KINDS, type FieldKind, numbersOf } from "./cron-field.js";
import { DAY_MS } from "./day.js";

/** Months are numbered from January of this year: some zones are still in 1969 when UTC's 1970 begins. */
const FIRST_YEAR = 1960;
/** The month after the last one that is searched. */
const END_MONTH = (2200 + 1 - FIRST_YEAR) * 12;

interface Month {
  readonly length: number;
  /** The day of the week of its first day; Sunday is 0. */
  readonly firstDayOfWeek: number;
}

export class MatchingDays {
  readonly #months: number;
  readonly #dates: number;
  readonly #daysOfWeek: number;
  /** What means another day in each month. */
  readonly #special: { readonly dates: readonly CronItem[]; readonly daysOfWeek: readonly CronItem[] };
  /**
   * As in Vixie's cron: if both fields are restricted, a day matches when either of them does. A field that begins with `*` is
   * not restricted, even if a step follows, so then both must match.
   */
  readonly #matchesEither: boolean;
  /** The month that was looked at last, because the instants of a schedule are usually asked for one after the other. */
  #lastMonth = -1;
  #lastMask = 0;

  constructor(dayOfMonth: CronField, month: CronField, dayOfWeek: CronField) {
    this.#dates = maskOfNumbers(FIELD_KINDS[2], dayOfMonth);
    this.#months = maskOfNumbers(FIELD_KINDS[3], month);
    this.#daysOfWeek = maskOfNumbers(FIELD_KINDS[4], dayOfWeek);
    const isSpecial = (item: CronItem) => item.kind !== "range";
    this.#special = { dates: dayOfMonth.items.filter(isSpecial), daysOfWeek: dayOfWeek.items.filter(isSpecial) };
    this.#matchesEither = !dayOfMonth.beginsWithStar && !dayOfWeek.beginsWithStar;
  }

  /** Whether there is a day that matches. */
  exist(): boolean {
    // Within 28 years, every month begins with each day of the week, and so does February in leap years.
    for (let month = 0; month < 28 * 12; month++) if (this.#maskOf(month) !== 0) return true;
    return false;
  }

  has(day: number): boolean {
    const date = new Date(day * DAY_MS);
    return ((this.#maskOf(monthNumber(date)) >> (date.getUTCDate() - 1)) & 1) === 1;
  }

  /** The first day that matches and is not before `day`; null if there is none until the end of 2200. */
  nextFrom(day: number): number | null {
    const date = new Date(day * DAY_MS);
    let month = monthNumber(date);
    let mask = this.#maskOf(month) & (-1 << (date.getUTCDate() - 1));
    while (month < END_MONTH) {
      const lowestBit = 31 - Math.clz32(mask & -mask);
      if (mask !== 0) return Date.UTC(FIRST_YEAR, month, 1 + lowestBit) / DAY_MS;
      month += 1;
      mask = this.#maskOf(month);
    }
    return null;
  }

  /** A bit for each day of the month that matches; the first of the month is bit 0. */
  #maskOf(month: number): number {
    if (((this.#months >> (month % 12)) & 1) === 0) return 0;
    if (month !== this.#lastMonth) {
      this.#lastMask = this.#computeMask(month);
      this.#lastMonth = month;
    }
    return this.#lastMask;
  }

  #computeMask(monthNumber: number): number {
    const firstDay = Date.UTC(FIRST_YEAR, monthNumber, 1) / DAY_MS;
    const length = Date.UTC(FIRST_YEAR, monthNumber + 1, 1) / DAY_MS - firstDay;
    const month = { length, firstDayOfWeek: mod7(firstDay + 4) }; // 1970-01-01 was a Thursday.

    let byDate = this.#dates;
    for (const item of this.#special.dates) byDate |= maskOfDate(item, month);
    let byDayOfWeek = 0;
    for (let day = 0; day < length; day++)
      byDayOfWeek |= ((this.#daysOfWeek >> ((month.firstDayOfWeek + day) % 7)) & 1) << day;
    for (const item of this.#special.daysOfWeek) byDayOfWeek |= maskOfDayOfWeek(item, month);

    const mask = this.#matchesEither ? byDate | byDayOfWeek : byDate & byDayOfWeek;
    return mask & (2 ** length - 1);
  }
}

function monthNumber(date: Date): number {
  return (date.getUTCFullYear() - FIRST_YEAR) * 12 + date.getUTCMonth();
}

function mod7(value: number): number {
  return ((value % 7) + 7) % 7;
}

/** A bit for each number in the field; the smallest one that the field can have is bit 0. */
function maskOfNumbers(kind: FieldKind, field: CronField): number {
  return numbersOf(kind, field).reduce((mask, value) => mask | (1 << (value - kind.min)), 0);
}

function maskOfDate(item: CronItem, { length, firstDayOfWeek }: Month): number {
  if (item.kind === "lastDay") return item.daysBefore < length ? 1 << (length - item.daysBefore - 1) : 0;
  if (item.kind !== "nearestWorkday") return 0;

  const day = item.day === "last" ? length : item.day;
  if (day > length) return 0;
  const dayOfWeek = mod7(firstDayOfWeek + day - 1);
  const [saturday, sunday] = [6, 0];
  // The nearest day must not be in another month.
  if (dayOfWeek === saturday) return 1 << (day === 1 ? 2 : day - 2);
  if (dayOfWeek === sunday) return 1 << (day === length ? day - 3 : day);
  return 1 << (day - 1);
}

function maskOfDayOfWeek(item: CronItem, { length, firstDayOfWeek }: Month): number {
  if (item.kind !== "nthDayOfWeek") return 0;
  const first = mod7(item.dayOfWeek - firstDayOfWeek);
  const last = first + 7 * Math.floor((length - 1 - first) / 7);
  const day = item.nth === "last" ? last : first + 7 * (item.nth - 1);
  return day <= last ? 1 << day : 0;
}
