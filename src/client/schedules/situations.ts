/** Reads what must be known of schedules to decide what they do: their open runs, and the occurrences that wait. */
import type { FiringSituation } from "../../core/schedule/plan-firing.js";
import type { OccurrenceRecord, Store } from "../../store/contract/store.js";
import type { StoredSchedule } from "./stored-schedule.js";

export interface Situation extends FiringSituation {
  readonly schedule: StoredSchedule;
}

/** A schedule that allows all overlaps may have any number of open runs; more are looked at after these have ended. */
const maxPending = 2_000;

export async function readSituations(
  store: Store,
  schedules: readonly StoredSchedule[],
  now: number,
): Promise<readonly Situation[]> {
  const pending = await readPending(store, schedules);
  const known = schedules.filter(({ record }) => pending.has(record.name));
  const open = known.flatMap(({ record }) => (pending.get(record.name) ?? []).filter(isBegun));
  const [tasks, nextOfBackfills, backfilled, failed] = await Promise.all([
    open.length === 0 ? [] : store.tasks(open.map(({ id }) => id)),
    readBackfills(store, known, pending),
    readBackfilled(store, known),
    readFailures(store, known, pending),
  ]);
  const openIds = new Set(tasks.map(({ runId }) => runId));
  return known.map((schedule): Situation => {
    const { record, data, state } = schedule;
    const ofSchedule = pending.get(record.name) ?? [];
    const isOpen = ({ id }: OccurrenceRecord) => openIds.has(id);
    const begun = ofSchedule.filter(isBegun);
    return {
      schedule,
      name: record.name,
      incarnation: record.incarnation,
      data,
      state,
      status: record.status,
      nextFor: record.nextFor,
      now,
      open: begun.filter((occurrence) => occurrence.pending === "open" && isOpen(occurrence)),
      ended: begun
        .filter((occurrence) => !isOpen(occurrence))
        .map((occurrence) => ({ occurrence, failed: failed.get(occurrence.id) ?? null })),
      waiting: ofSchedule.filter((occurrence) => occurrence.pending === "waiting"),
      backfill: {
        isOpen: begun.some((occurrence) => occurrence.pending === "backfill_open" && isOpen(occurrence)),
        next: nextOfBackfills.get(record.name) ?? null,
      },
      backfilled: backfilled.get(record.name) ?? new Set(),
    };
  });
}

const isBegun = ({ pending }: OccurrenceRecord) => pending === "open" || pending === "backfill_open";

type PendingByName = ReadonlyMap<string, readonly OccurrenceRecord[]>;

/** Schedules of which not all pending occurrences were read are left out, unless there is no other. */
async function readPending(store: Store, schedules: readonly StoredSchedule[]): Promise<PendingByName> {
  const names = schedules.map(({ record }) => record.name).sort();
  const kinds = ["open", "backfill_open", "waiting"] as const;
  const rows = await store.schedules.pending({ names, kinds, limit: maxPending });
  const byName = new Map<string, OccurrenceRecord[]>(names.map((name) => [name, []]));
  const incarnations = new Map(schedules.map(({ record }) => [record.name, record.incarnation]));
  // Rows of an earlier schedule of the same name are not this one's.
  for (const row of rows) if (row.incarnation === incarnations.get(row.schedule)) byName.get(row.schedule)?.push(row);
  if (rows.length < maxPending) return byName;
  const lastRead = rows.at(-1)?.schedule as string;
  const complete = names.filter((name) => name < lastRead);
  const read = complete.length > 0 ? complete : [lastRead];
  return new Map(read.map((name) => [name, byName.get(name) ?? []]));
}

/** The next occurrence of each backfill, of schedules that have one. */
async function readBackfills(
  store: Store,
  schedules: readonly StoredSchedule[],
  pending: PendingByName,
): Promise<ReadonlyMap<string, OccurrenceRecord>> {
  const withBackfill = schedules.filter(({ state, record }) => {
    return state.hasBackfill === true && pending.has(record.name);
  });
  const next = await Promise.all(
    withBackfill.map(({ record }) =>
      store.schedules.pending({ names: [record.name], kinds: ["backfill_waiting"], limit: 1 }),
    ),
  );
  return new Map(next.flat().map((occurrence) => [occurrence.schedule, occurrence]));
}

const ledgerPage = 1_000;
const lowestId = "00000000-0000-0000-0000-000000000000";

/**
 * The instants that a backfill has taken although the schedule has not passed them: it was paused, or no worker was there.
 * A schedule in this situation is rare, and each is read by itself.
 */
async function readBackfilled(
  store: Store,
  schedules: readonly StoredSchedule[],
): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
  const found = new Map<string, Set<number>>();
  for (const { record, state } of schedules) {
    const { name, incarnation, nextFor } = record;
    if (state.backfilledUntil === undefined || nextFor === null) continue;
    const instants = new Set<number>();
    let before = { scheduledFor: state.backfilledUntil + 1, id: lowestId };
    for (let isLastPage = false; !isLastPage; ) {
      const page = await store.schedules.occurrences({ schedule: name, before, limit: ledgerPage });
      for (const row of page)
        if (row.detail.backfill && row.incarnation === incarnation) instants.add(row.scheduledFor);
      const last = page.at(-1);
      isLastPage = last === undefined || page.length < ledgerPage || last.scheduledFor < nextFor;
      if (last !== undefined) before = last;
    }
    found.set(name, instants);
  }
  return found;
}

/** Whether ended runs have failed, for schedules that pause after failures. Runs that were canceled or deleted are left out. */
async function readFailures(
  store: Store,
  schedules: readonly StoredSchedule[],
  pending: PendingByName,
): Promise<ReadonlyMap<string, boolean>> {
  const counting = schedules.filter(({ data }) => data.pauseOnFailure !== null);
  const ids = counting.flatMap(({ record }) => (pending.get(record.name) ?? []).filter(isBegun)).map(({ id }) => id);
  const runs = ids.length === 0 ? [] : await store.runsById(ids);
  return new Map(
    runs.flatMap(({ id, status }) =>
      status === "failed" || status === "completed" ? [[id, status === "failed"] as const] : [],
    ),
  );
}
