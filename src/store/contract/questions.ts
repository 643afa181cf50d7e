/**
 * The questions of people who look at many runs: lists, counts, errors, figures. Each question reads a bounded number of
 * rows, however many runs there are, and says so where its answer is incomplete for that reason.
 */
import type { RunFilter, RunRecord } from "./records.js";

/** A position in a list of runs. */
export interface RunPosition {
  readonly createdAt: number;
  readonly id: string;
}

export interface RunQuery extends RunFilter {
  /** The fingerprint of the error that failed or paused the run. */
  readonly fingerprint?: string;
  readonly version?: string;
  /** The step that failed or paused the run, that it waits for, or that its chain is at. */
  readonly step?: string;
  /** A text that the error which failed or paused the run contains, byte for byte. */
  readonly errorText?: string;
  /** How long the run has taken since it started, until its end or until now. */
  readonly minDurationMs?: number;
  readonly maxDurationMs?: number;
  /**
   * The maximum number of runs that are examined. Conditions that no index serves are checked run by run, and few of the
   * runs may fulfil them.
   */
  readonly maxExamined: number;
}

/**
 * A page of a list, newest first. Lists of runs that have not ended (`active`, or status pending, waiting or running) are
 * ordered by id, which begins with the time of creation; all other lists by `createdAt`, then id.
 */
export interface RunPage {
  readonly runs: readonly RunRecord[];
  /** Where the next page begins; null when there are no more runs. In a list that is ordered by id, only its id is certain. */
  readonly next: RunPosition | null;
  /** Whether the page ends early because `maxExamined` runs were examined: `next` leads on. */
  readonly isCut: boolean;
}

/** How many runs of a workflow have a status. */
export interface StatusCount {
  readonly workflow: string;
  readonly status: "pending" | "running" | "waiting" | "paused" | "failed" | "canceled";
  readonly count: number;
}

export interface StatusCounts {
  readonly counts: readonly StatusCount[];
  /**
   * The statuses of which only the newest `cap` runs were counted: there are more. Pending, running and waiting runs are
   * counted together.
   */
  readonly cappedStatuses: readonly StatusCount["status"][];
}

/** Runs of one workflow that failed, or are paused, because of errors with the same fingerprint. */
export interface ErrorGroup {
  readonly workflow: string;
  readonly fingerprint: string;
  readonly status: "failed" | "paused";
  readonly count: number;
  /** How many of these runs were created at `recentSince` or later. */
  readonly recentCount: number;
  /** When the oldest and the newest of these runs were created. */
  readonly firstCreatedAt: number;
  readonly lastCreatedAt: number;
  /** The run with the greatest id, which is the newest or close to it. */
  readonly latestRunId: string;
}

export interface ErrorGroups {
  readonly groups: readonly ErrorGroup[];
  /** The statuses of which only the newest `cap` runs were read: there are more. */
  readonly cappedStatuses: readonly ErrorGroup["status"][];
}

/** How many runs of a workflow began and ended within one minute. */
export interface MinuteFigures {
  /** The number of the minute since 1970, by the store's clock. */
  readonly minute: number;
  readonly workflow: string;
  readonly began: number;
  readonly completed: number;
  readonly failed: number;
  readonly canceled: number;
  readonly paused: number;
}

export interface FiguresRange {
  readonly from: number;
  readonly to: number;
  /** Adds up the minutes from each multiple of this number to the next; `minute` is then the multiple. Default 1. */
  readonly bucketMinutes?: number;
}

export interface Questions {
  /** A page of the runs that match the filter. */
  runs(query: RunQuery): Promise<RunPage>;
  /** Counts runs by workflow and status, at most `cap` of each status. Completed runs are not counted. */
  statusCounts(options: { readonly cap: number }): Promise<StatusCounts>;
  /** Groups the newest `cap` failed and the newest `cap` paused runs by workflow and fingerprint. */
  errorGroups(options: { readonly cap: number; readonly recentSince: number }): Promise<ErrorGroups>;
  /** The number of the last event in the run's log; 0 when the log is empty. */
  lastEventSeq(runId: string): Promise<number>;
  /** Adds these numbers to those that are stored. */
  addFigures(figures: readonly MinuteFigures[]): Promise<void>;
  /** The figures of the minutes `from` to `to`, both included, ordered by minute, then workflow. */
  figures(range: FiguresRange): Promise<readonly MinuteFigures[]>;
  /** Deletes the figures of all minutes before this one. */
  deleteFigures(options: { readonly before: number }): Promise<void>;
}
