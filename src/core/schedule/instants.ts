/** The instants of a schedule. They are a pure function of its timing: time is an argument. */
import type { ScheduleTiming } from "./timing.js";

/** The first instant after `after`; null if there is none until the year 2200. */
export function nextInstant(timing: ScheduleTiming, after: number): number | null {
  throw new Error(`${timing.rule.kind} ${after}`);
}

/** The first `count` instants after `after`. */
export function nextInstants(timing: ScheduleTiming, after: number, count: number): number[] {
  throw new Error(`${timing.rule.kind} ${after} ${count}`);
}

/** The latest instant in (after, notAfter]. */
export function lastInstant(timing: ScheduleTiming, after: number, notAfter: number): number | null {
  throw new Error(`${timing.rule.kind} ${after} ${notAfter}`);
}

/** How many instants are in (after, notAfter]; at most `cap`. */
export function countInstants(timing: ScheduleTiming, after: number, notAfter: number, cap: number): number {
  throw new Error(`${timing.rule.kind} ${after} ${notAfter} ${cap}`);
}

/** How much an instant is delayed: in [0, jitterMs). */
export function jitterOf(name: string, instant: number, jitterMs: number): number {
  throw new Error(`${name} ${instant} ${jitterMs}`);
}

/** The shortest distance between two instants. */
export function minimumGapMs(timing: ScheduleTiming): number {
  throw new Error(timing.rule.kind);
}
