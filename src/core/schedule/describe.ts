/** Schedules in plain language. */
import type { ScheduleTiming } from "./timing.js";

export function describeTiming(timing: ScheduleTiming): string {
  throw new Error(timing.rule.kind);
}

/** Whether the zone's offset changes on the local day of the instant. */
export function isTransitionDay(timeZone: string, instant: number): boolean {
  throw new Error(`${timeZone} ${instant}`);
}
