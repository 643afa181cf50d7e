/** What the screens about schedules share: types, addresses, and when a schedule counts as late. */
import type { Answer } from "../../api/api.js";

export type Schedule = Answer<"getSchedule">;
export type Occurrence = Answer<"listOccurrences">["occurrences"][number];

/** A worker looks at a schedule the moment that it is due, so a minute is more than a delay. */
const lateAfterMs = 60_000;

export const isLate = ({ lateMs }: Pick<Schedule, "lateMs">): boolean => lateMs >= lateAfterMs;

/** Only what no code declares, and what the code of its application does not contain any more, can be deleted. */
export const isDeletable = ({ app, status }: Pick<Schedule, "app" | "status">): boolean =>
  app === null || status === "retired";

export const scheduleAddress = (name: string): string => `/schedules/${encodeURIComponent(name)}`;

/** How many rows of the ledger a page has, and how many occurrences the strip. */
export const ledgerPageSize = 50;
