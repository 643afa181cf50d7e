/** The part of a heartbeat that tells a worker about its schedules. */
import type { ScheduleInterest } from "../contract/worker.js";

/** A worker that does not say which schedules it fires fires none but those that were put by the API. */
export const noInterest: ScheduleInterest = { app: null, setKey: "" };

/**
 * When the next schedule of two sets must be looked at. Each set is a search for the first entry of an index: an aggregate
 * over both would read all their entries.
 */
export const nextScheduleSql = (schedules: string, firstSet: string, secondSet: string): string => {
  const first = (set: string) =>
    `SELECT * FROM (SELECT s.next_at FROM ${schedules} s WHERE s.set_key = ${set} AND s.next_at IS NOT NULL ORDER BY s.next_at LIMIT 1) f`;
  return `(SELECT min(n.next_at) FROM (${first(firstSet)} UNION ALL ${first(secondSet)}) n)`;
};
