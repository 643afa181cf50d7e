/** Makes the occurrences of a backfill: past instants of a schedule that have not run. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { countInstants, nextInstants } from "../../core/schedule/instants.js";
import { occurrenceId } from "../../core/schedule/occurrence-id.js";
import type { Occurrence, OccurrenceDetail } from "../../core/schedule/schedule-data.js";
import type { Store } from "../../store/contract/store.js";
import type { StoredSchedule } from "./stored-schedule.js";

/** The maximum number of occurrences of one backfill. */
const maxBackfill = 10_000;
const idsPerRead = 1_000;

export interface BackfillPlan {
  readonly occurrences: readonly Occurrence[];
  /** How many instants of the range have run, or are going to run, already. */
  readonly alreadyDone: number;
}

export async function planBackfill(
  store: Store,
  { record, data }: StoredSchedule,
  range: { readonly from: number; readonly to: number },
  detail: OccurrenceDetail,
  now: number,
): Promise<BackfillPlan> {
  const { from, to } = range;
  const count = countInstants(data.timing, from - 1, to, maxBackfill + 1);
  if (count > maxBackfill)
    throw new InvalidInputError(
      `The backfill of schedule "${record.name}" has more than ${maxBackfill.toLocaleString("en")} occurrences; choose a shorter range.`,
    );
  const instants = count === 0 ? [] : nextInstants(data.timing, from - 1, count);
  const ids = instants.map((instant) => occurrenceId(record.name, record.incarnation, instant));
  const existing = new Set<string>();
  for (let at = 0; at < ids.length; at += idsPerRead) {
    // What failed to start, or was replaced by a newer occurrence while it waited, may be tried again.
    for (const { id, outcome, pending } of await store.schedules.occurrencesById(ids.slice(at, at + idsPerRead)))
      if (outcome === "ran" || pending !== null) existing.add(id);
  }
  const occurrences = instants.flatMap((scheduledFor, index): Occurrence[] => {
    const id = ids[index] as string;
    if (existing.has(id)) return [];
    const range = { scheduledFor, scheduledUntil: scheduledFor, count: 1 };
    return [{ id, ...range, outcome: "buffered", pending: "backfill_waiting", at: now, detail }];
  });
  return { occurrences, alreadyDone: instants.length - occurrences.length };
}
