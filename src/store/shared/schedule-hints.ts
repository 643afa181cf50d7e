/** The hint that follows from changes to schedules. */
import type { Hint, ScheduleBatch, ScheduleChange } from "../contract/store.js";

/** Workers plan for the instant that they know of, and people watch the list of schedules: both are told. */
export function hintsOfScheduleChanges(applied: readonly ScheduleChange[], { isFiring }: ScheduleBatch): Hint[] {
  if (applied.length === 0) return [];
  return [isFiring ? { kind: "schedules", areFired: true } : { kind: "schedules" }];
}
