/** Finds schedules that cannot be read or never fire again, and occurrences for which their schedule waits for ever. */
import type { OccurrenceRecord, ScheduleRecord, Store } from "../../store/contract/store.js";
import { toStoredSchedule } from "../schedules/stored-schedule.js";
import type { Difference } from "./difference.js";

const schedulesPerPage = 200;
/** More pending occurrences of one page are left out: a schedule that allows all overlaps may have any number of them. */
const maxPending = 20_000;
const pendingKinds = ["open", "backfill_open", "waiting", "backfill_waiting"] as const;

export async function* stuckSchedules(store: Store): AsyncGenerator<Difference> {
  let after: string | null = null;
  for (;;) {
    const page: readonly ScheduleRecord[] = await store.schedules.list({ after, limit: schedulesPerPage });
    yield* differencesOf(store, page);
    const last = page.at(-1);
    if (last === undefined || page.length < schedulesPerPage) return;
    after = last.name;
  }
}

async function* differencesOf(store: Store, page: readonly ScheduleRecord[]): AsyncGenerator<Difference> {
  const names = page.map(({ name }) => name);
  const pending = await store.schedules.pending({ names, kinds: pendingKinds, limit: maxPending });
  const begun = pending.filter(isBegun);
  const tasks = begun.length === 0 ? [] : await store.tasks(begun.map(({ id }) => id));
  const openIds = new Set(tasks.map(({ runId }) => runId));
  // Read last: when a run ends, its schedule is due in the same commit, and waits for a worker that looks at it.
  const now = await store.now();
  for (const schedule of await store.schedules.byName(names)) {
    yield* unreadable(schedule);
    if (schedule.nextAt !== null && schedule.nextAt <= now) continue;
    if (schedule.status === "active" && schedule.nextAt === null) yield neverFires(schedule);
    if (schedule.status === "retired") continue;
    const ofSchedule = pending.filter((occurrence) => occurrence.schedule === schedule.name);
    for (const occurrence of ofSchedule)
      if (waitsForEver(occurrence, schedule, ofSchedule, openIds)) yield stuck(schedule, occurrence);
  }
}

const isBegun = ({ pending }: OccurrenceRecord) => pending === "open" || pending === "backfill_open";

function waitsForEver(
  occurrence: OccurrenceRecord,
  { status }: ScheduleRecord,
  ofSchedule: readonly OccurrenceRecord[],
  openIds: ReadonlySet<string>,
): boolean {
  if (isBegun(occurrence)) return !openIds.has(occurrence.id);
  const isBackfill = occurrence.pending === "backfill_waiting";
  // What waits in a paused schedule begins after it was resumed; a backfill runs also while it is paused.
  if (status === "paused" && !isBackfill) return false;
  const kindOfRun = isBackfill ? "backfill_open" : "open";
  return !ofSchedule.some(({ pending }) => pending === kindOfRun);
}

function* unreadable(schedule: ScheduleRecord): Generator<Difference> {
  try {
    toStoredSchedule(schedule);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    const text = `Schedule "${schedule.name}" cannot be read: ${problem}`;
    yield { kind: "row.unreadable", runId: null, log: null, table: "schedules", text };
  }
}

const neverFires = ({ name }: ScheduleRecord): Difference => ({
  kind: "schedule.stuck",
  runId: null,
  log: null,
  table: null,
  text: `Schedule "${name}" is active and has no time at which it fires; put it again, or pause and resume it.`,
});

function stuck({ name }: ScheduleRecord, { id, pending, scheduledFor }: OccurrenceRecord): Difference {
  const instant = new Date(scheduledFor).toISOString();
  const runId = pending === "open" || pending === "backfill_open" ? id : null;
  const problem =
    runId === null ? "waits, and no run is open that it could wait for" : "counts as open, and its run is not";
  const text = `Schedule "${name}" has an occurrence (${instant}, ${id}) that ${problem}.`;
  return { kind: "occurrence.stuck", runId, log: null, table: pending, text };
}
