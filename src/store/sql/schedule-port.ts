/** What the schedules of a SQL store need of its connections. */
import type { Hint, NewRun, RefusedStart } from "../contract/store.js";
import type { Queryable } from "./dialect.js";

/** A transaction of the store's own. */
export interface ScheduleTransaction extends Queryable {
  /** Creates runs; those that are refused are not created. */
  start(runs: readonly NewRun[]): Promise<readonly RefusedStart[]>;
}

export type ScheduleWork<T> = (
  transaction: ScheduleTransaction,
) => Promise<{ readonly shouldCommit: boolean; readonly result: T }>;

export interface SchedulePort extends Queryable {
  /** Commits if `work` returns `shouldCommit`, otherwise rolls back. `work` may be executed again after a deadlock. */
  transaction<T>(work: ScheduleWork<T>): Promise<T>;
  emitHints(hints: readonly Hint[]): void;
}
