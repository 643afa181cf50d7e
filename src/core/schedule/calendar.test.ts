/**
 * The instants of random cron expressions in every zone, compared with a slow reference that shares no code with the calendar: it
 * goes from minute to minute of real time and asks Intl what the clocks show.
 *
 * PAWL_CALENDAR_SEED repeats a run. PAWL_CALENDAR_ROUNDS=20 tries twenty times as many expressions, and asks Intl for every single
 * minute; otherwise it is asked for each quarter of an hour, and for the minutes of those in which the clocks do not go on evenly.
 */
import { expect, test } from "vitest";
import { sized } from "../../../test/support/effort.js";
import { seededRandom } from "../naming/ids.js";
import { countInstants, lastInstant, nextInstant } from "./instants.js";
import type { ScheduleRule, ScheduleTiming } from "./timing.js";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const rounds = Number(process.env.PAWL_CALENDAR_ROUNDS ?? 1);
/** One of so many years, and of so many zones, is tried; which, depends on the seed. */
const every = rounds > 1 ? 1 : sized(4, 1);
const seed = process.env.PAWL_CALENDAR_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
const years = 16 / every;
const firstYear = 2020 + years * Math.floor(seededRandom(`${seed} years`)() * every);
const FROM = Date.UTC(firstYear, 0, 1);
const TO = Date.UTC(firstYear + years, 0, 1);

test(`expressions agree with the reference within two days of each change of an offset (seed ${seed})`, () => {
  const random = seededRandom(`${seed} changes`);
  const seen = { instants: 0, shifted: 0, repeated: 0, changes: 0 };
  for (const { zones, changes } of zoneGroups()) {
    changes.forEach((at, index) => {
      // The zones of a group have the same clocks, so they take turns.
      const timeZone = zones[index % zones.length] as string;
      const window = new Window(timeZone, at - 2 * DAY, at + 2 * DAY);
      for (let count = 0; count < 3 * rounds; count++) compare(window, randomRule(random, timeZone), seen);
      seen.changes += 1;
    });
  }
  // What is never met is not tested. Of 42 seeds, none met fewer than 241 changes, 30,000 instants and 41 shifted ones.
  expect(seen.changes).toBeGreaterThan(800 / every);
  expect(seen.instants).toBeGreaterThan(40_000 / every);
  expect(seen.shifted).toBeGreaterThan(0);
  expect(seen.repeated).toBeGreaterThan(0);
});

test(`expressions agree with the reference in random weeks of many zones (seed ${seed})`, () => {
  const random = seededRandom(`${seed} weeks`);
  const seen = { instants: 0, shifted: 0, repeated: 0 };
  const chosen = Math.floor(random() * every);
  for (const timeZone of allZones().filter((_, index) => index % every === chosen)) {
    const start = FROM + Math.floor((random() * (TO - FROM)) / MINUTE) * MINUTE;
    const window = new Window(timeZone, start, start + 7 * DAY);
    for (let count = 0; count < 2 * rounds; count++) compare(window, randomRule(random, timeZone), seen);
  }
  expect(seen.instants).toBeGreaterThan(10_000 / every);
});

function compare(window: Window, rule: CronRule, seen: { instants: number; shifted: number; repeated: number }): void {
  const timing: ScheduleTiming = { rule, startAt: null, endAt: null, except: [] };
  const expected = window.instantsOf(rule, seen);
  const [after, notAfter] = [window.start - 1, window.end];
  const actual: number[] = [];
  try {
    for (let next = nextInstant(timing, after); next !== null && next <= notAfter; next = nextInstant(timing, next))
      actual.push(next);
  } catch (error) {
    // Random expressions such as "0 0 30 2 *" are refused. Then the reference must find nothing, either.
    expect((error as Error).message).toContain("never fires");
    return expect(expected).toEqual([]);
  }

  const difference = expected.findIndex((instant, index) => instant !== actual[index]);
  if (difference >= 0 || actual.length !== expected.length) {
    const at = difference >= 0 ? difference : expected.length;
    const show = (instant: number | undefined) => (instant === undefined ? "none" : new Date(instant).toISOString());
    throw new Error(
      `PAWL_CALENDAR_SEED=${seed}: ${JSON.stringify(rule)} after ${show(after)}: instant ${at} is ${show(actual[at])}, but the reference has ${show(expected[at])}.`,
    );
  }
  expect(lastInstant(timing, after, notAfter)).toBe(expected.at(-1) ?? null);
  expect(countInstants(timing, after, notAfter, 100_000)).toBe(expected.length);
  seen.instants += actual.length;
}

// ---- Zones ---------------------------------------------------------------------------------------------------------------

const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clocks show, in minutes, as if it were UTC. */
function localMinute(timeZone: string, instant: number): number {
  let format = formats.get(timeZone);
  if (format === undefined) {
    const numeric = "numeric";
    format = new Intl.DateTimeFormat("en-US", {
      ...{ timeZone, hourCycle: "h23", year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric },
    });
    formats.set(timeZone, format);
  }
  const [month = 0, day, year = 0, hour, minute] = format.format(instant).split(/\D+/).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute) / MINUTE;
}

function allZones(): string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone")];
}

/** The zones that have the same clocks, and when the offset of these changes. */
function zoneGroups(): { zones: string[]; changes: number[] }[] {
  const groups = new Map<string, { zones: string[]; changes: number[] }>();
  for (const timeZone of allZones()) {
    const offsetAt = (instant: number) => localMinute(timeZone, instant) - instant / MINUTE;
    const changes: number[] = [];
    const signature = [offsetAt(FROM)];
    for (let at = FROM + 6 * DAY; at < TO; at += 6 * DAY) {
      const before = signature.at(-1) as number;
      if (offsetAt(at) === before) continue;
      let [low, high] = [at - 6 * DAY, at];
      while (high - low > MINUTE) {
        const middle = Math.floor((low + high) / 2 / MINUTE) * MINUTE;
        if (offsetAt(middle) === before) low = middle;
        else high = middle;
      }
      changes.push(high);
      signature.push(high, offsetAt(at));
    }
    const group = groups.get(signature.join());
    if (group === undefined) groups.set(signature.join(), { zones: [timeZone], changes });
    else group.zones.push(timeZone);
  }
  return [...groups.values()];
}

// ---- The reference -------------------------------------------------------------------------------------------------------

type CronRule = Extract<ScheduleRule, { kind: "cron" }>;

/** A stretch of time in a zone. It knows what the clocks show at each minute, also six hours before and after. */
class Window {
  readonly #locals: number[] = [];
  readonly #firstIndex = new Map<number, number>();
  readonly #lastIndex = new Map<number, number>();
  readonly #start: number;

  constructor(
    timeZone: string,
    readonly start: number,
    readonly end: number,
  ) {
    this.#start = start - DAY / 4;
    const stride = rounds > 1 ? 1 : 15;
    let next = localMinute(timeZone, this.#start);
    for (let at = this.#start; at < end + DAY / 4; at += stride * MINUTE) {
      const local = next;
      next = localMinute(timeZone, at + stride * MINUTE);
      const isEven = next === local + stride;
      for (let minute = 0; minute < stride; minute++)
        this.#locals.push(isEven ? local + minute : localMinute(timeZone, at + minute * MINUTE));
    }
    this.#locals.forEach((local, index) => {
      if (!this.#firstIndex.has(local)) this.#firstIndex.set(local, index);
      this.#lastIndex.set(local, index);
    });
  }

  instantsOf(rule: CronRule, seen: { shifted: number; repeated: number }): number[] {
    const matches = matcherOf(rule.cron);
    const isWallClock = !/[*/]/.test(rule.cron.split(" ")[1] as string);
    const instants = new Set<number>();
    const add = (index: number): boolean => {
      const instant = this.#start + index * MINUTE;
      if (instant >= this.start && instant <= this.end) instants.add(instant);
      return true;
    };
    this.#locals.forEach((local, index) => {
      if (isWallClock && rule.gap !== "skip" && index > 0) {
        const previous = this.#locals[index - 1] as number;
        for (let skipped = previous + 1; skipped < local; skipped++)
          if (matches(skipped) && add(index)) seen.shifted += 1;
      }
      if (!matches(local)) return;
      const [first, last] = [this.#firstIndex.get(local), this.#lastIndex.get(local)];
      if (first !== last) seen.repeated += 1;
      const counts = !isWallClock || rule.repeat === "both" || index === (rule.repeat === "second" ? last : first);
      if (counts) add(index);
    });
    return [...instants];
  }
}

function matcherOf(cron: string): (local: number) => boolean {
  const [minuteText, hourText, dateText, monthText, dayText] = cron.split(" ") as [
    string,
    string,
    string,
    string,
    string,
  ];
  const minutes = numbers(minuteText, 0, 59);
  const hours = numbers(hourText, 0, 23);
  const months = numbers(monthText, 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC");
  const matchesEither = !/^[*?]/.test(dateText) && !/^[*?]/.test(dayText);
  const days = new Map<number, boolean>();
  const matchesDay = (day: number): boolean => {
    const date = new Date(day * DAY);
    if (!months.has(date.getUTCMonth() + 1)) return false;
    const byDate = dateText.split(",").some((part) => matchesDate(part, date));
    const byDay = dayText.split(",").some((part) => matchesDayOfWeek(part, date));
    return matchesEither ? byDate || byDay : byDate && byDay;
  };
  return (local) => {
    const minute = local % 1440;
    if (!minutes.has(minute % 60) || !hours.has((minute - (minute % 60)) / 60)) return false;
    const day = (local - minute) / 1440;
    let known = days.get(day);
    if (known === undefined) days.set(day, (known = matchesDay(day)));
    return known;
  };
}

/** The numbers of a list of ranges, by walking from the beginning of each to its end, round the corner if need be. */
function numbers(text: string, min: number, max: number, names = ""): Set<number> {
  const found = new Set<number>();
  const numberOf = (word: string) => (names.includes(word) ? names.split(" ").indexOf(word) + min : Number(word));
  for (const part of text.split(",")) {
    const [base = "", step = "1"] = part.split("/");
    const [from, to] = /^[*?]$/.test(base) ? [min, max] : base.split("-").map(numberOf);
    let value = from as number;
    const end = to ?? (part.includes("/") ? max : value);
    for (let steps = 0; ; steps++) {
      if (steps % Number(step) === 0) found.add(value);
      if (value === end) break;
      value = value === max ? min : value + 1;
    }
  }
  return found;
}

function daysOfMonth(date: Date): Date[] {
  const days: Date[] = [];
  for (let day = 1; day <= 31; day++) {
    const each = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day));
    if (each.getUTCMonth() === date.getUTCMonth()) days.push(each);
  }
  return days;
}

function matchesDate(part: string, date: Date): boolean {
  const days = daysOfMonth(date);
  const workdays = days.filter((day) => day.getUTCDay() % 6 !== 0).map((day) => day.getUTCDate());
  const day = date.getUTCDate();
  if (part === "LW") return day === workdays.at(-1);
  if (part.startsWith("L")) return day === days.length - Number(part.slice(2));
  if (!part.endsWith("W")) return numbers(part, 1, 31).has(day);
  const wanted = Number.parseInt(part, 10);
  const distances = workdays.map((workday) => Math.abs(workday - wanted));
  return wanted <= days.length && day === workdays[distances.indexOf(Math.min(...distances))];
}

function matchesDayOfWeek(part: string, date: Date): boolean {
  const [day = "", nth] = part.split("#");
  if (!numbers(day.replace(/^7$/, "0"), 0, 6, "SUN MON TUE WED THU FRI SAT").has(date.getUTCDay())) return false;
  if (nth === "L") return date.getUTCDate() + 7 > daysOfMonth(date).length;
  return nth === undefined || Math.ceil(date.getUTCDate() / 7) === Number(nth);
}

// ---- Random expressions --------------------------------------------------------------------------------------------------

function randomRule(random: () => number, timeZone: string): CronRule {
  const int = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const pick = <const Value>(...values: Value[]): Value => values[int(0, values.length - 1)] as Value;
  const sometimes = (probability: number, text: () => string) =>
    random() < probability ? text() : pick("*", "*", "?");
  /** Offsets mostly change in the night. */
  const hour = () => (random() < 0.8 ? pick(0, 1, 2, 3, 4, 22, 23) : int(0, 23));
  const date = () => String(int(1, 31));
  const day = (): string => pick("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT");
  const fields = [
    pick(
      () => String(pick(0, 15, 30, 45, int(0, 59))),
      () => `${int(0, 59)},${int(0, 59)}`,
      () => `${int(0, 59)}-${int(0, 59)}/${int(1, 30)}`,
      () => `*/${int(5, 60)}`,
      () => (random() < 0.1 ? "*" : `${int(0, 59)}/${int(10, 60)}`),
    )(),
    pick(
      () => String(hour()),
      () => String(hour()),
      () => `${hour()},${hour()}`,
      () => `${hour()}-${hour()}`,
      () => `*/${int(1, 24)}`,
      () => `${hour()}-${hour()}/${int(1, 5)}`,
      () => "*",
    )(),
    sometimes(0.3, () =>
      pick(
        date,
        () => `${date()}-${date()}`,
        () => `*/${int(1, 31)}`,
        () => `${date()},L`,
        () => `L-${int(0, 5)}`,
        () => `${date()}W,LW`,
      )(),
    ),
    random() < 0.8 ? "*" : pick("3-10", "JAN-JUN", "SEP-APR", "*/2", "MAR,APR,OCT,NOV"),
    sometimes(0.3, () =>
      pick(
        day,
        () => `${day()}-${day()}`,
        () => "SUN,7,FRI",
        () => `${day()}#${int(1, 5)}`,
        () => `${day()}#L`,
        () => "*/2",
      )(),
    ),
  ];
  if (fields[3] === "?") fields[3] = "*";
  const gap = random() < 0.2 ? ({ gap: "skip" } as const) : {};
  const repeat = random() < 0.5 ? { repeat: pick("second", "both") } : {};
  return { kind: "cron", cron: fields.join(" "), timeZone, ...gap, ...repeat };
}
