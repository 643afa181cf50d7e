/** The hint that follows from changes to schedules. */
import type { Hint, ScheduleChange } from "../contract/store.js";

/** Workers plan for the instant that they know of, and people watch the list of schedules: both are told. */
export const hintsOfScheduleChanges = (changes: readonly ScheduleChange[]): Hint[] =>
  changes.length > 0 ? [{ kind: "schedules" }] : [];
