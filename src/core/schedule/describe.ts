/** Schedules in plain language, for the command line and the dashboard. */

import { DAY_MS, isDay } from "./day.js";
import { describeCron } from "./describe-cron.js";
import { FIRST_INSTANT, LAST_INSTANT, type ScheduleRule, type ScheduleTiming } from "./timing.js";
import { clock, counted, listed } from "./words.js";
import { LONGEST_CHANGE_MS, zoneOf } from "./zone.js";

const MAX_LISTED_EXCEPTIONS = 3;

/** `At 02:30 every day, Europe/Berlin`; `Every 45 minutes, 5 minutes past, except on 2026-12-25`. */
export function describeTiming({ rule, startAt, endAt, except }: ScheduleTiming): string {
  const limits = [
    ...(startAt === null ? [] : [`from ${dateAndTime(startAt)} UTC on`]),
    ...(endAt === null ? [] : [`until ${dateAndTime(endAt)} UTC`]),
    ...(except.length === 0 ? [] : [`except ${describeExceptions(except)}`]),
  ];
  return [describeRule(rule), ...limits].join(", ");
}

function describeRule(rule: ScheduleRule): string {
  if (rule.kind === "cron") {
    const gap = rule.gap === "skip" ? ", not in an hour that the clocks skip" : "";
    const repeat = rule.repeat === undefined ? "" : `, ${REPEATS[rule.repeat]}`;
    return `${describeCron(rule.cron)}, ${rule.timeZone}${gap}${repeat}`;
  }
  if (rule.kind === "at") {
    const [first, last] = [rule.instants[0] as number, rule.instants.at(-1) as number];
    if (rule.instants.length === 1) return `Once, ${dateAndTime(first)} UTC`;
    return `On ${rule.instants.length} given dates, from ${dateAndTime(first)} to ${dateAndTime(last)} UTC`;
  }
  const { everyMs, offsetMs } = rule;
  if (everyMs === DAY_MS && offsetMs % 60_000 === 0) return `At ${clock(offsetMs / 60_000)} every day, UTC`;
  const period = lengthOf(everyMs).replace(/^1 (\w+)$/, "$1");
  return offsetMs === 0 ? `Every ${period}` : `Every ${period}, ${lengthOf(offsetMs)} past`;
}

const REPEATS = {
  second: "the second time in an hour that the clocks repeat",
  both: "twice in an hour that the clocks repeat",
} as const;

function describeExceptions(except: readonly (string | number)[]): string {
  const shown = except.slice(0, MAX_LISTED_EXCEPTIONS).map((entry) => {
    if (typeof entry === "number") return `${dateAndTime(entry)} UTC`;
    return isDay(entry) ? `on ${entry}` : `when "${entry}" matches`;
  });
  const more = except.length - shown.length;
  return listed(more === 0 ? shown : [...shown, `${more} more`]);
}

/** `2026-12-24 18:00`, with seconds if there are any. */
function dateAndTime(instant: number): string {
  const text = new Date(instant).toISOString().replace("T", " ");
  return text.slice(0, instant % 60_000 === 0 ? 16 : instant % 1000 === 0 ? 19 : 23);
}

const UNITS: readonly (readonly [number, string])[] = [
  [DAY_MS, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1000, "second"],
  [1, "millisecond"],
];

/** `45 minutes`, `1 hour 30 minutes`: exact, unlike `formatDuration`. */
function lengthOf(ms: number): string {
  let rest = ms;
  const parts: string[] = [];
  for (const [unitMs, noun] of UNITS) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) parts.push(counted(count, noun));
  }
  return parts.join(" ");
}

/** Whether the local day of the instant is longer or shorter than others, or follows one that was skipped. */
export function isTransitionDay(timeZone: string, instant: number): boolean {
  if (!(instant >= FIRST_INSTANT && instant <= LAST_INSTANT)) return false;
  const zone = zoneOf(timeZone);
  const day = Math.floor((instant + zone.offsetAt(instant)) / DAY_MS);
  const until = instant + 2 * LONGEST_CHANGE_MS;
  let change = zone.firstChange(instant - 2 * LONGEST_CHANGE_MS, until);
  for (; change !== null; change = zone.firstChange(change.at, until)) {
    // The local times that are skipped or repeated, which belong to one day or, after midnight, to two.
    const from = change.at + Math.min(change.beforeMs, change.afterMs);
    const to = change.at + Math.max(change.beforeMs, change.afterMs);
    const isWholeDay = to - from >= DAY_MS;
    if (day >= Math.floor(from / DAY_MS) && day <= Math.floor((isWholeDay ? to : to - 1) / DAY_MS)) return true;
  }
  return false;
}
