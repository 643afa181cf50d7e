/** The instants of a schedule. They are a pure function of its timing: time is an argument. */
import { sha256Hex } from "../naming/ids.js";
import { compiled } from "./compiled-timing.js";
import { DAY_MS } from "./day.js";
import { FIRST_INSTANT, LAST_INSTANT, type ScheduleTiming } from "./timing.js";
import { type OffsetChange, zoneOf } from "./zone.js";

/** The first instant after `after`; null if there is none until the end of the year 2200. */
export function nextInstant(timing: ScheduleTiming, after: number): number | null {
  return compiled(timing).next(after);
}

/** The first `count` instants after `after`; fewer if there are no more. */
export function nextInstants(timing: ScheduleTiming, after: number, count: number): number[] {
  const instants: number[] = [];
  let next = count > 0 ? nextInstant(timing, after) : null;
  while (next !== null) {
    instants.push(next);
    next = instants.length < count ? nextInstant(timing, next) : null;
  }
  return instants;
}

/**
 * The latest instant in (after, notAfter]; null if there is none. The search is a bisection: for a schedule that fires each minute
 * and has not been looked at for ten years, it takes about 40 steps.
 */
export function lastInstant(timing: ScheduleTiming, after: number, notAfter: number): number | null {
  let last = nextInstant(timing, after);
  /** There is no instant in (end, notAfter]. */
  let end = Math.min(notAfter, LAST_INSTANT);
  if (last === null || last > end) return null;
  while (last < end) {
    const middle: number = Math.floor((last + end) / 2);
    const next = nextInstant(timing, middle);
    if (next === null || next > end) end = middle;
    else last = next;
  }
  return last;
}

/** How many instants are in (after, notAfter]; at most `cap`, because most timings have to be counted one by one. */
export function countInstants(timing: ScheduleTiming, after: number, notAfter: number, cap: number): number {
  const { rule, except, endAt } = timing;
  let next = nextInstant(timing, after);
  if (rule.kind === "every" && except.length === 0) {
    const end = Math.min(notAfter, endAt ?? LAST_INSTANT, LAST_INSTANT);
    return next === null || next > end ? 0 : Math.min(cap, Math.floor((end - next) / rule.everyMs) + 1);
  }
  let count = 0;
  while (next !== null && next <= notAfter && count < cap) {
    count += 1;
    next = nextInstant(timing, next);
  }
  return count;
}

/**
 * How many milliseconds an instant is delayed, in [0, jitterMs): a hash, so that every worker computes the same delay and
 * schedules with different names are spread.
 */
export function jitterOf(name: string, instant: number, jitterMs: number): number {
  // 13 digits are 52 bits, which a number holds exactly.
  const fraction = Number.parseInt(sha256Hex(`jitter ${instant}:${name}`).slice(0, 13), 16) / 2 ** 52;
  return Math.floor(fraction * jitterMs);
}

const SAMPLE_START = Date.UTC(2026, 0, 1);
const SAMPLE_COUNT = 1_000;
const SAMPLED_CHANGES_MS = 4 * 366 * DAY_MS;

/**
 * The shortest distance between two instants; infinite if there are no two. For a cron expression it is the shortest of the first
 * thousand, and of those around the changes of the offset within four years: a repeated hour and a shifted time bring instants
 * nearer to each other. Without limits, the sample begins in 2026, for there is no clock here; the years hardly differ.
 */
export function minimumGapMs(timing: ScheduleTiming): number {
  const { rule, startAt, endAt } = timing;
  if (rule.kind === "every") return rule.everyMs;
  if (rule.kind === "at") return shortestGap(nextInstants(timing, FIRST_INSTANT - 1, rule.instants.length));

  const start = startAt ?? Math.min(SAMPLE_START, (endAt ?? LAST_INSTANT) - SAMPLED_CHANGES_MS);
  const end = Math.min(start + SAMPLED_CHANGES_MS, LAST_INSTANT);
  const zone = zoneOf(rule.timeZone);
  let gapMs = shortestGap(nextInstants(timing, start - 1, SAMPLE_COUNT));
  for (let change = zone.firstChange(start, end); change !== null; change = zone.firstChange(change.at, end))
    gapMs = Math.min(gapMs, shortestGap(instantsAround(timing, change)));
  return gapMs;
}

/** The instants that the change brings nearer to each other, with the ones before and after them. */
function instantsAround(timing: ScheduleTiming, { at, beforeMs, afterMs }: OffsetChange): number[] {
  const reachMs = Math.abs(afterMs - beforeMs);
  const before = lastInstant(timing, at - reachMs - DAY_MS, at - reachMs);
  const instants: number[] = before === null ? [] : [before];
  let next = nextInstant(timing, before ?? at - reachMs);
  while (next !== null) {
    instants.push(next);
    next = next > at + reachMs ? null : nextInstant(timing, next);
  }
  return instants;
}

function shortestGap(instants: readonly number[]): number {
  let gapMs = Number.POSITIVE_INFINITY;
  instants.forEach((instant, index) => {
    if (index > 0) gapMs = Math.min(gapMs, instant - (instants[index - 1] as number));
  });
  return gapMs;
}
