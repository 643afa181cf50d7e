/** What `pawl.schedules` tells about schedules and their occurrences. */
import { describeTiming } from "../../core/schedule/describe.js";
import {
  type CatchUp,
  newScheduleState,
  type Outcome,
  type Overlap,
  type Pending,
  type ScheduleData,
  type ScheduleStatus,
} from "../../core/schedule/schedule-data.js";
import { plainInputOf } from "../../define/schedule/schedule.js";
import type { OccurrenceRecord, PendingCount, RunStatus, ScheduleRecord, Store } from "../../store/contract/store.js";
import { dueAtOf, type StoredSchedule, toStoredSchedule } from "./stored-schedule.js";

/** What became of an occurrence of a schedule. */
export type OccurrenceOutcome = Outcome;

/** A schedule, as `pawl.schedules.get()` and `list()` return it. */
export interface ScheduleInfo {
  /** The name of the schedule. */
  readonly name: string;
  /** The name of the workflow that it starts. */
  readonly workflow: string;
  /**
   * `"active"`, `"paused"` (by a person, or after failures), `"retired"` (the code of its application does not contain it any
   * more) or `"ended"` (it has no further instants, or has reached `maxRuns`).
   */
  readonly status: ScheduleStatus;
  /** The rule in plain language: "At 02:30 every day, Europe/Berlin". */
  readonly rule: string;
  /** The cron expression; null for other rules. */
  readonly cron: string | null;
  /** The time zone of the rule. */
  readonly timeZone: string;
  /** The time between two occurrences, in milliseconds; null for other rules. */
  readonly everyMs: number | null;
  /** The application whose code declares it; null if it was put by the API. */
  readonly app: string | null;
  /** The instant of the next occurrence; null if there is none. */
  readonly nextFor: Date | null;
  /** When the next run starts: `nextFor` with jitter, or the end of a pause; null if it does not start by itself. */
  readonly nextAt: Date | null;
  /** How late the next occurrence is, in milliseconds; 0 if it is not late. */
  readonly lateMs: number;
  /** The input of its runs, if it is a value. */
  readonly input: unknown;
  /** Whether a function in the code computes the input. */
  readonly computesInput: boolean;
  /** What happens while a run of it is open. */
  readonly overlap: Overlap;
  /** What runs after downtime. */
  readonly catchUp: {
    /** Which occurrences run. */
    readonly mode: CatchUp["mode"];
    /** How late an occurrence may be, in milliseconds; null: the mode alone decides. */
    readonly withinMs: number | null;
  };
  /** The longest delay of a run by jitter, in milliseconds. */
  readonly jitterMs: number;
  /** After how many failed runs in a row it is paused; null: never. */
  readonly pauseOnFailure: number | null;
  /** After how many runs it ends; null: never. */
  readonly maxRuns: number | null;
  /** How many of its occurrences were accepted so far, for `maxRuns`. */
  readonly acceptedRuns: number;
  /** How many of its latest runs have failed, one after another. */
  readonly failedInARow: number;
  /** How many of its runs are open. */
  readonly openRuns: number;
  /** How many occurrences wait for a run to end, or for a worker that computes their input. */
  readonly waiting: number;
  /** How many occurrences of backfills wait. */
  readonly backfillWaiting: number;
  /** What became of the latest occurrence; null if there was none. */
  readonly last: {
    /** The id of the occurrence, which is that of its run if it has one. */
    readonly id: string;
    /** What became of it. */
    readonly outcome: OccurrenceOutcome;
    /** Its instant. */
    readonly scheduledFor: Date;
    /** When that was decided. */
    readonly at: Date;
  } | null;
  /** When it was paused; null unless it is. */
  readonly pausedAt: Date | null;
  /** When the pause ends by itself; null: it does not. */
  readonly pausedUntil: Date | null;
  /** Who has paused it; null if that is not known. */
  readonly pausedBy: string | null;
  /** Why it is paused; null if that is not known. */
  readonly pauseReason: string | null;
  /** When it was first put or declared. */
  readonly createdAt: Date;
}

/** One row of the ledger of a schedule: an occurrence, or consecutive ones that were skipped for the same reason. */
export interface OccurrenceInfo {
  /** The id; an occurrence that has run has the id of its run. */
  readonly id: string;
  /** The name of the schedule. */
  readonly schedule: string;
  /** The instant; of consecutive skipped occurrences, the first. */
  readonly scheduledFor: Date;
  /** The last instant that the row stands for. */
  readonly scheduledUntil: Date;
  /** How many occurrences the row stands for. */
  readonly count: number;
  /** What became of it. */
  readonly outcome: OccurrenceOutcome;
  /** The id of its run; null if it has none. */
  readonly runId: string | null;
  /** The status of its run; null if it has none, or if the run was pruned. */
  readonly runStatus: RunStatus | null;
  /** When this was decided. */
  readonly at: Date;
  /** How late it was decided, in milliseconds; null for rows of skipped occurrences. */
  readonly latenessMs: number | null;
  /** How many earlier occurrences, which did not run, the run stands for. */
  readonly missed: number;
  /** Whether `trigger()` asked for it. */
  readonly manual: boolean;
  /** Whether it is part of a backfill. */
  readonly backfill: boolean;
  /** Whether its run is open, or it waits; null when nothing is left to do. */
  readonly pending: "open" | "waiting" | null;
  /** Why it did not start; null if it did. */
  readonly error: string | null;
  /** Who asked for it; null if that is not known, or it is a regular one. */
  readonly by: string | null;
  /** Why it was asked for. */
  readonly reason: string | null;
}

export function toScheduleInfo(record: ScheduleRecord, counts: readonly PendingCount[], now: number): ScheduleInfo {
  const { data, state, problem } = readOrPlaceholder(record);
  const { rule } = data.timing;
  const count = (...kinds: readonly Pending[]) =>
    counts
      .filter(({ schedule, pending }) => schedule === record.name && kinds.includes(pending))
      .reduce((sum, { count }) => sum + count, 0);
  const { pause, last } = state;
  // The row's own instant may be earlier: a worker also looks when a run ends, and when one is triggered or backfilled.
  const dueAt =
    record.status === "active" && record.nextFor !== null ? dueAtOf(record.name, data, record.nextFor) : null;
  return {
    name: record.name,
    workflow: record.workflow,
    status: record.status,
    rule: problem ?? describeTiming(data.timing),
    cron: rule.kind === "cron" ? rule.cron : null,
    timeZone: rule.kind === "cron" ? rule.timeZone : "UTC",
    everyMs: rule.kind === "every" ? rule.everyMs : null,
    app: record.app,
    nextFor: toDate(record.nextFor),
    nextAt: toDate(record.status === "paused" ? (pause?.until ?? null) : dueAt),
    lateMs: dueAt === null ? 0 : Math.max(0, now - dueAt),
    input: plainInputOf(data),
    computesInput: data.input === null,
    overlap: data.overlap,
    catchUp: data.catchUp,
    jitterMs: data.jitterMs,
    pauseOnFailure: data.pauseOnFailure,
    maxRuns: data.maxRuns,
    acceptedRuns: state.accepted,
    failedInARow: state.failures,
    openRuns: count("open", "backfill_open"),
    waiting: count("waiting"),
    backfillWaiting: count("backfill_waiting"),
    last: last === undefined ? null : { ...last, scheduledFor: new Date(last.scheduledFor), at: new Date(last.at) },
    pausedAt: toDate(pause?.at ?? null),
    pausedUntil: toDate(pause?.until ?? null),
    pausedBy: pause?.by ?? null,
    pauseReason: pause?.reason ?? null,
    createdAt: new Date(record.createdAt),
  };
}

/** A damaged row is still listed: its rule says what is wrong with it. */
function readOrPlaceholder(
  record: ScheduleRecord,
): Omit<StoredSchedule, "record"> & { readonly problem: string | null } {
  try {
    return { ...toStoredSchedule(record), problem: null };
  } catch (error) {
    const problem = (error as Error).message;
    const { workflow } = record;
    const timing = { rule: { kind: "at" as const, instants: [] }, startAt: null, endAt: null, except: [] };
    const limits = { jitterMs: 0, overlap: "skip", catchUp: { mode: "latest", withinMs: null } } as const;
    const data: ScheduleData = { workflow, input: null, timing, ...limits, pauseOnFailure: null, maxRuns: null };
    return { data, state: newScheduleState, problem };
  }
}

const toDate = (instant: number | null) => (instant === null ? null : new Date(instant));

/** Rows of the ledger, with what has become of their runs. */
export async function readOccurrences(
  store: Pick<Store, "runsById">,
  records: readonly OccurrenceRecord[],
): Promise<OccurrenceInfo[]> {
  const ids = records.filter(({ outcome }) => outcome === "ran").map(({ id }) => id);
  const runs = ids.length === 0 ? [] : await store.runsById(ids);
  const statuses = new Map(runs.map(({ id, status }) => [id, status]));
  return records.map((record) => toOccurrenceInfo(record, statuses.get(record.id) ?? null));
}

function toOccurrenceInfo(record: OccurrenceRecord, runStatus: RunStatus | null): OccurrenceInfo {
  const { detail, outcome, pending } = record;
  return {
    id: record.id,
    schedule: record.schedule,
    scheduledFor: new Date(record.scheduledFor),
    scheduledUntil: new Date(record.scheduledUntil),
    count: record.count,
    outcome,
    runId: outcome === "ran" ? record.id : null,
    runStatus,
    at: new Date(record.at),
    latenessMs: detail.latenessMs ?? null,
    missed: detail.missed ?? 0,
    manual: detail.manual ?? false,
    backfill: detail.backfill ?? false,
    pending: pending === null ? null : pending.endsWith("open") ? "open" : "waiting",
    error: detail.error ?? null,
    by: detail.by ?? null,
    reason: detail.reason ?? null,
  };
}
