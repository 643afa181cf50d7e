/**
 * The reads that `verify` makes: every row that belongs to a run, one page at a time and without payloads, so that a
 * database with a million runs can be checked in little memory. No run waits for these reads, so no index exists for
 * them.
 */

/** A task's row as it is stored, even if its columns contradict each other. */
export interface AuditedTask {
  /** As in `TaskRecord`. */
  readonly route: string;
  /** The class in which the task waits for slots of limits; missing if it waits in none. */
  readonly classId?: string;
  readonly version: string;
  /** null when the stored number is not one of these states. */
  readonly state: "parked" | "ready" | "owned" | null;
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly deliveries: number;
  readonly pendingMessages: number;
}

/** A run's row and a summary of that run's rows in the other tables, all read at one instant. */
export interface AuditedRun {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly heroType: string | null;
  readonly heroId: string | null;
  readonly heroKey: string | null;
  readonly startKey: string | null;
  readonly parentId: string | null;
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
  readonly parentAttempt: number | null;
  /** The status column as it is stored. It is never "running": that status is derived from the task. */
  readonly status: string;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly task: AuditedTask | null;
  readonly inboxRows: number;
  /** The number of the last event that the rows of the log claim to hold; 0 when the log is empty. */
  readonly lastEventSeq: number;
  /** The approximate size of the run's payloads and log. */
  readonly bytes: number;
}

/** The tables whose rows belong to a run. */
export type OrphanTable = "tasks" | "events" | "inbox" | "cursors" | "gathered" | "start_deadlines";

export interface AuditPage {
  /** The page contains only ids that are greater than this one; null starts with the smallest id. */
  readonly after: string | null;
  readonly limit: number;
}

export interface Audit {
  /** A page of all runs, ordered by id. */
  runs(page: AuditPage): Promise<readonly AuditedRun[]>;
  /** These runs, in the order of `ids`; runs that do not exist are missing from the result. */
  runsById(ids: readonly string[]): Promise<readonly AuditedRun[]>;
  /**
   * The run ids, in order, that occur in this table although no run with that id exists. For the inbox, the result also
   * contains the ids of runs that exist but have no task.
   */
  orphanedRunIds(table: OrphanTable, page: AuditPage): Promise<readonly string[]>;
}
