/**
 * What Pawl asks of a database.
 *
 * A store keeps rows and has no opinion about workflows: it never looks inside `data`, `input` or `waiting`, and it takes
 * no decision that the callers could take. Everything that happens to runs goes through `commit`, one batch in one
 * transaction. `memory.ts` is the executable specification; `pawl/testing` exports the suite that every store passes.
 *
 * All instants are epoch milliseconds of the store's own clock, all payloads are text that was encoded by the caller.
 */
import type { StoredEvent } from "../../core/run/event.js";
import type { Message, NewRun } from "../../core/run/transition.js";
import type { Batch, CommitResult, RefusedStart } from "./commit.js";
import type { Hint } from "./hint.js";
import type { Maintenance } from "./maintenance.js";
import type {
  CursorRow,
  InboxRow,
  RunFilter,
  RunRecord,
  TaskRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "./records.js";
import type { ClaimRequest, ClaimResult, Fence, HeartbeatResult, WorkerInfo, WorkerRecord } from "./worker.js";

export type { NewEvent, StoredEvent } from "../../core/run/event.js";
export type {
  ActiveStatus,
  CursorWrite,
  Message,
  NewRun,
  NextTaskState,
  RunSpec,
  RunStatus,
  TerminalStatus,
  Transition,
} from "../../core/run/transition.js";
export type { Audit, AuditedRun, AuditedTask, OrphanTable } from "./audit.js";
export type { Batch, CommitResult, RefusedStart } from "./commit.js";
export type { Hint } from "./hint.js";
export type {
  AgePosition,
  ChildKey,
  ChildRun,
  Maintenance,
  OwnedTaskCount,
  PausedQueue,
  RootRun,
  RouteBacklog,
  RunSample,
  WorkerRoutes,
} from "./maintenance.js";
export type { PoolSizes, StoreOptions } from "./options.js";
export type {
  CursorRow,
  Damage,
  InboxRow,
  RunFilter,
  RunRecord,
  TaskRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "./records.js";
export type {
  ClaimedTask,
  ClaimRequest,
  ClaimResult,
  Fence,
  HeartbeatResult,
  Route,
  WorkerInfo,
  WorkerRecord,
} from "./worker.js";

export interface SentInTransaction {
  /** The addressees that have no task (any more). */
  readonly undeliverable: readonly string[];
  readonly notStarted: readonly string[];
}

/** A transaction of its own connection, for steps whose writes commit with their record. */
export interface StoreTransaction {
  /** What the user's code gets: a `pg` client, a `mysql2` promise connection, a SQLite database. */
  readonly handle: unknown;
  /**
   * Applies the batch in this transaction and commits it. Anything but "committed" has rolled back. Throws TransactionError,
   * with nothing written, when it is not the transaction that was begun any more, or cannot be committed. The handle is of
   * no use from here on.
   */
  commit(batch: Batch): Promise<CommitResult>;
  /** @param options.discard the code that has the handle may still be running: its connection is never used again */
  rollback(options?: { readonly discard?: boolean }): Promise<void>;
}

export interface Store {
  /** For people: "sqlite ./pawl.db", "postgres localhost:5432/app". No password. */
  readonly description: string;

  /** Brings the tables up to date. Safe when many processes do it at once, and after being killed in the middle. */
  migrate(): Promise<void>;
  /** The numbers of migrations that are not applied yet. */
  pendingMigrations(): Promise<readonly number[]>;

  /** The one way anything is written to runs. All of it, or nothing. */
  commit(batch: Batch): Promise<CommitResult>;
  /** Makes runs on the caller's own open transaction; the caller commits. Refusals as in `commit`. */
  startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }>;
  /** Puts messages into inboxes, as `Transition.mail` does. Returns the addressees that have no task (any more). */
  send(messages: readonly Message[]): Promise<{ readonly undeliverable: readonly string[] }>;
  /**
   * The same on the caller's own open transaction; the caller commits. A run that is parked and has not begun gets nothing,
   * as a message would let it begin before its time; it is named in `unbegun`.
   */
  sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction>;
  beginTransaction(): Promise<StoreTransaction>;

  /**
   * Takes due tasks: of what is ready, higher priority first, then those due earlier. Parked tasks whose time has come
   * may be served by time alone, but must not wait behind a never-ending stream of ready ones.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Registers or revives a worker: `live`, with an epoch higher than any it had. */
  registerWorker(worker: WorkerInfo): Promise<Fence>;
  /** Renews the lease, reaps silent workers, reports mail and which queues are paused. */
  heartbeat(fence: Fence): Promise<HeartbeatResult>;
  /**
   * A worker leaves: marked dead, what it still owned is made ready. Here and when workers are reaped, others are told
   * to look in any case: only the one that is gone knew when the runs that it had parked become due.
   */
  deregisterWorker(fence: Fence): Promise<void>;

  now(): Promise<number>;
  run(id: string): Promise<RunRecord | null>;
  runsById(ids: readonly string[]): Promise<readonly RunRecord[]>;
  runs(filter: RunFilter): Promise<readonly RunRecord[]>;
  tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]>;
  /** The tasks that this fence owns: for a worker that did not hear what became of a claim or a commit. */
  ownedTasks(fence: Fence): Promise<readonly TaskRecord[]>;
  /** Those of them that have undrained mail, as `beat` reports them; but this only looks. */
  ownedWithMessages(fence: Fence): Promise<readonly string[]>;
  /** A page of one log, in order, from the event after number `after`. */
  log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]>;
  /** Whole logs, for replay. Runs without events may be missing from the map. */
  logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>>;
  inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>>;
  cursors(runId: string): Promise<readonly CursorRow[]>;
  workers(): Promise<readonly WorkerRecord[]>;

  registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void>;
  workflow(name: string): Promise<WorkflowRecord | null>;

  /** What operators and housekeeping ask for; no run waits for any of it. */
  readonly maintenance: Maintenance;

  /** Whether `watch` hears of other processes' commits too. If not, processes that wait for them have to look. */
  readonly hasCrossProcessHints: boolean;
  /** Calls the listener with hints about this and other processes' commits until the returned function is called. */
  watch(listener: (hint: Hint) => void): () => void;
  close(): Promise<void>;
}
