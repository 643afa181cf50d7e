/**
 * What is stored about a schedule, as plain data: its definition, its state, and the details of its occurrences. The
 * columns contain these objects as JSON.
 */
import type { ScheduleTiming } from "./rule.js";

/** What happens when an occurrence is due while a run of the schedule has not ended. A paused run has not ended. */
export type Overlap = "skip" | "bufferOne" | "bufferAll" | "cancelOther" | "allowAll";

/** Which occurrences run that became due while no worker fired the schedule. */
export interface CatchUp {
  readonly mode: "latest" | "none" | "all";
  /** Occurrences that are later than this do not run; null: the mode alone decides. */
  readonly withinMs: number | null;
}

/** The column `definition` of pawl_schedules. */
export interface ScheduleData {
  /** The name of the workflow. */
  readonly workflow: string;
  /** The encoded input of the runs; null when a function in the code computes it. */
  readonly input: string | null;
  readonly timing: ScheduleTiming;
  readonly jitterMs: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** The schedule is paused after this many failed runs in a row; null: never. */
  readonly pauseOnFailure: number | null;
  /** The schedule ends after this many occurrences have been accepted; null: never. */
  readonly maxRuns: number | null;
  readonly priority?: number;
  readonly tags?: readonly string[];
  readonly hero?: { readonly type: string; readonly id: string };
}

/**
 * - `active`: it fires.
 * - `paused`: by a person, or after failures.
 * - `retired`: the set of schedules that is in force does not contain it.
 * - `ended`: it has no further instants, or has reached `maxRuns`.
 */
export type ScheduleStatus = "active" | "paused" | "retired" | "ended";

/** The row of skipped occurrences that the next skipped one is added to. */
export interface SkippedRow {
  readonly id: string;
  readonly outcome: Outcome;
  readonly from: number;
  readonly until: number;
  readonly count: number;
}

/** The column `state` of pawl_schedules. */
export interface ScheduleState {
  /** How many occurrences were accepted, for `maxRuns`: they have begun or wait in the buffer. */
  readonly accepted: number;
  /** How many runs in a row have failed. */
  readonly failures: number;
  /** When and by whom the schedule was paused, while it is. */
  readonly pause?: {
    readonly at: number;
    readonly until: number | null;
    readonly by: string | null;
    readonly reason: string | null;
  };
  /** Until when the schedule did not fire because it was paused or retired; the next firing records what it missed. */
  readonly idleUntil?: { readonly at: number; readonly outcome: "paused" | "retired" };
  /** The last row of the ledger, if it is one of skipped occurrences. */
  readonly skipped?: SkippedRow;
  /** What became of the latest occurrence. */
  readonly last?: {
    readonly id: string;
    readonly outcome: Outcome;
    readonly scheduledFor: number;
    readonly at: number;
  };
  /** Whether occurrences of a backfill may be waiting. */
  readonly hasBackfill?: true;
  /** The last instant of a backfill that has taken instants which the schedule itself has not passed yet. */
  readonly backfilledUntil?: number;
}

export const newScheduleState: ScheduleState = { accepted: 0, failures: 0 };

/**
 * What became of an occurrence.
 *
 * - `ran`: its run was started.
 * - `buffered`: it waits until the run before it has ended.
 * - `requested`: `trigger()` asked for it, and a worker with the code has to compute its input.
 * - `skipped_overlap`: a run was open.
 * - `skipped_late`: nothing fired it in time.
 * - `skipped_buffer_full`: too many occurrences were waiting already.
 * - `paused`, `retired`: the schedule did not fire then.
 * - `failed_to_start`: its input could not be computed, or its run was refused.
 */
export type Outcome =
  | "ran"
  | "buffered"
  | "requested"
  | "skipped_overlap"
  | "skipped_late"
  | "skipped_buffer_full"
  | "paused"
  | "retired"
  | "failed_to_start";

export const outcomes: readonly Outcome[] = [
  "ran",
  "buffered",
  "requested",
  "skipped_overlap",
  "skipped_late",
  "skipped_buffer_full",
  "paused",
  "retired",
  "failed_to_start",
];

/** Why the schedule still has to look at an occurrence: its run is open, or it waits. null: nothing is left to do. */
export type Pending = "open" | "waiting" | "backfill_open" | "backfill_waiting";

/** The column `detail` of pawl_occurrences. */
export interface OccurrenceDetail {
  readonly manual?: true;
  readonly backfill?: true;
  /** It starts although a run is open. */
  readonly force?: true;
  /** How many earlier occurrences, which did not run, it stands for. */
  readonly missed?: number;
  /** How long after its instant (with jitter) it was decided. */
  readonly latenessMs?: number;
  readonly error?: string;
  readonly by?: string;
  readonly reason?: string;
}

/** A row of the ledger. */
export interface Occurrence {
  /** The id of its run; skipped occurrences have an id of their own. */
  readonly id: string;
  /** The instant; of consecutive skipped ones, the first. */
  readonly scheduledFor: number;
  /** The last of the instants that the row stands for. */
  readonly scheduledUntil: number;
  readonly count: number;
  readonly outcome: Outcome;
  readonly pending: Pending | null;
  /** When this was decided. */
  readonly at: number;
  readonly detail: OccurrenceDetail;
}

/** The column `schedule` of pawl_runs: the occurrence that a run belongs to. A run that gathers starts has a `RunGathering` there. */
export interface RunSchedule {
  readonly name: string;
  readonly scheduledFor: number;
  readonly firedAt: number;
  readonly missed: number;
  readonly manual?: true;
  readonly backfill?: true;
}
