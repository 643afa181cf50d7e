/**
 * What `verify` reads of a store: every row that belongs to a run, a page at a time and without the payloads, so that a
 * million runs can be looked at in little memory. Nothing here is on the way of a run, and no index exists for its sake.
 */

/** A task as it is in its row, also where that makes no sense. */
export interface AuditedTask {
  readonly route: string;
  readonly version: string;
  /** null: a number that stands for no state. */
  readonly state: "parked" | "ready" | "owned" | null;
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly deliveries: number;
  readonly pendingMessages: number;
}

/** A run's row with what the other tables have of it, all of one instant. */
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
  /** As it is in the row: never "running". */
  readonly status: string;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly task: AuditedTask | null;
  readonly inboxRows: number;
  /** The number of the last event that the rows of the log claim to hold; 0 without any. */
  readonly lastEventSeq: number;
  /** About how much its payloads and its log take. */
  readonly bytes: number;
}

export type OrphanTable = "tasks" | "events" | "inbox" | "cursors";

export interface AuditPage {
  /** Only ids that come after this one; null: from the first. */
  readonly after: string | null;
  readonly limit: number;
}

export interface Audit {
  /** In the order of their ids. */
  runs(page: AuditPage): Promise<readonly AuditedRun[]>;
  runsById(ids: readonly string[]): Promise<readonly AuditedRun[]>;
  /**
   * Ids, in their order, of runs that have rows in this table although they do not exist; for the inbox also those that
   * exist and have no task.
   */
  orphanedRunIds(table: OrphanTable, page: AuditPage): Promise<readonly string[]>;
}
