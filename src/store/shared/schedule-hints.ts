/** The hint that follows from changes to schedules. */
import type { Hint, ScheduleChange } from "../contract/store.js";

/** Workers plan for the instant that they know of, so they are told when a schedule is new or must be looked at. */
export const hintsOfScheduleChanges = (changes: readonly ScheduleChange[]): Hint[] =>
  changes.some(({ row }) => row !== null && row.nextAt !== null) ? [{ kind: "schedules" }] : [];
