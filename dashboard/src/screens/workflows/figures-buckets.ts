/** Sums of several minutes, for tables that a person can read. */
import type { Answer } from "../../api/api.js";

export type Minute = Answer<"getFigures">["minutes"][number];

/** At most `max` rows, each with the sum of as many minutes; the last may have fewer. */
export function bucketed(minutes: readonly Minute[], max: number): Minute[] {
  const size = Math.max(1, Math.ceil(minutes.length / max));
  const rows: Minute[] = [];
  for (let start = 0; start < minutes.length; start += size)
    rows.push(minutes.slice(start, start + size).reduce(addUp));
  return rows;
}

const addUp = (sum: Minute, next: Minute): Minute => ({
  at: sum.at,
  began: sum.began + next.began,
  completed: sum.completed + next.completed,
  failed: sum.failed + next.failed,
  canceled: sum.canceled + next.canceled,
  paused: sum.paused + next.paused,
});
