/**
 * The part of a store that keeps schedules. A schedule's row says when it must be looked at; the ledger has one row for
 * each of its occurrences, or for consecutive skipped ones. All changes go through `apply`, which checks revisions, so that
 * of several workers that fire one schedule at the same time one succeeds.
 */
import type { NewRun } from "../../core/run/transition.js";
import type { Occurrence, Pending, ScheduleStatus } from "../../core/schedule/schedule-data.js";
import type { RefusedStart } from "./commit.js";

export interface ScheduleRecord {
  readonly name: string;
  /** The application that declares it in its code; null for a schedule that was put by the API. */
  readonly app: string | null;
  /** Identifies the set of definitions that the row comes from; "" for a schedule that was put by the API. */
  readonly setKey: string;
  /** The hash of its own definition. */
  readonly hash: string;
  /** Differs from that of an earlier schedule of the same name. */
  readonly incarnation: string;
  /** Grows with every change of the row. */
  readonly revision: number;
  readonly status: ScheduleStatus;
  /** The instant of the next occurrence; null when there is none. */
  readonly nextFor: number | null;
  /** When the schedule must be looked at; null: not before something changes. */
  readonly nextAt: number | null;
  readonly workflow: string;
  /** The JSON of a `ScheduleData`. */
  readonly definition: string;
  /** The JSON of a `ScheduleState`. */
  readonly state: string;
  readonly createdAt: number;
}

/** The set of schedules of an application that is in force, and the sets that it has had. */
export interface ScheduleApp {
  readonly app: string;
  readonly setKey: string;
  readonly revision: number;
  /** The JSON of the sets with the instants at which they were first seen. */
  readonly sets: string;
}

export interface OccurrenceRecord extends Occurrence {
  readonly schedule: string;
  readonly incarnation: string;
}

export interface ScheduleChange {
  readonly name: string;
  /** The revision that the caller has read; null if there must be no such schedule. */
  readonly expectedRevision: number | null;
  /** The new row; null deletes it. A new schedule keeps the revision of its row, any other gets the next one. */
  readonly row: ScheduleRecord | null;
  /** Rows of the ledger, which replace rows with the same id. */
  readonly occurrences: readonly OccurrenceRecord[];
  /** Runs that begin with this change. */
  readonly starts: readonly NewRun[];
}

export interface ScheduleBatch {
  /** At most one change per schedule. */
  readonly changes: readonly ScheduleChange[];
  /**
   * Whether schedules that were due are fired. Other workers look at the old instant anyway, so they need not be told of the
   * new one, which is later.
   */
  readonly isFiring?: true;
  /** Written first; if its revision is not the expected one, nothing is written. */
  readonly app?: { readonly row: ScheduleApp; readonly expectedRevision: number | null };
}

export type ScheduleResult =
  | {
      readonly kind: "applied";
      readonly at: number;
      /** The schedules whose change was written. The others have changed since the caller has read them. */
      readonly names: ReadonlySet<string>;
    }
  /** The row of the application has changed. Nothing was written. */
  | { readonly kind: "app changed" }
  /** Starts were refused because other runs hold their keys. Nothing was written. */
  | { readonly kind: "refused"; readonly refused: readonly RefusedStart[] };

/** A position in the ledger of a schedule, which is read from the newest occurrence to the oldest. */
export interface OccurrencePosition {
  readonly scheduledFor: number;
  readonly id: string;
}

/** How many occurrences of a schedule are pending, by kind. */
export interface PendingCount {
  readonly schedule: string;
  readonly pending: Pending;
  readonly count: number;
}

export interface Schedules {
  /**
   * The schedules of these sets that must be looked at now, those first that have waited longest, and the store's time;
   * null if there are none.
   */
  due(query: {
    readonly setKeys: readonly string[];
    readonly limit: number;
  }): Promise<{ readonly now: number; readonly schedules: readonly ScheduleRecord[] } | null>;
  /** When the next schedule of these sets, one or two, must be looked at; null: none. */
  nextAt(setKeys: readonly string[]): Promise<number | null>;
  /** These schedules, ordered by name; those that do not exist are missing. */
  byName(names: readonly string[]): Promise<readonly ScheduleRecord[]>;
  /** A page of all schedules, or of those of an application, ordered by name. */
  list(page: {
    readonly after: string | null;
    readonly limit: number;
    readonly app?: string;
  }): Promise<readonly ScheduleRecord[]>;
  /** The occurrences of these schedules with one of these kinds of `pending`, ordered by schedule, instant and id. */
  pending(query: {
    readonly names: readonly string[];
    readonly kinds: readonly Pending[];
    readonly limit: number;
  }): Promise<readonly OccurrenceRecord[]>;
  /** Counts the pending occurrences of these schedules. */
  pendingCounts(names: readonly string[]): Promise<readonly PendingCount[]>;
  /** A page of the ledger of a schedule, the newest first. */
  occurrences(page: {
    readonly schedule: string;
    readonly before: OccurrencePosition | null;
    readonly limit: number;
  }): Promise<readonly OccurrenceRecord[]>;
  /** The occurrences with these ids, in any order; those that do not exist are missing. */
  occurrencesById(ids: readonly string[]): Promise<readonly OccurrenceRecord[]>;
  app(name: string): Promise<ScheduleApp | null>;
  /** The sets that are in force, one for each application that has ever declared schedules. */
  setKeysInForce(): Promise<readonly string[]>;
  /** Writes changes in one transaction. A schedule whose revision is not the expected one is left out, with its runs. */
  apply(batch: ScheduleBatch): Promise<ScheduleResult>;
  /** Deletes at most `limit` rows of the ledger that are older than this and not pending; returns their number. */
  deleteOccurrences(options: { readonly before: number; readonly limit: number }): Promise<number>;
}
