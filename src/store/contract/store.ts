/**
 * The contract between Pawl and a database.
 *
 * A store keeps rows and knows nothing about workflows: it never parses `data`, `input` or `waiting`, and it
 * makes no decision that its caller could make. Every change to a run goes through `commit`, one batch in one
 * transaction. `store/memory` is the executable specification; `pawl/testing` exports the suite that every store
 * passes.
 *
 * All instants are epoch milliseconds of the store's own clock. All payloads are text that the caller has encoded.
 */
import type { StoredEvent } from "../../core/run/event.js";
import type { Message, NewRun } from "../../core/run/transition.js";
import type { Batch, CommitResult, RefusedStart } from "./commit.js";
import type { Gatherings } from "./gatherings.js";
import type { Hint } from "./hint.js";
import type { Limits } from "./limits.js";
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
import type { Schedules } from "./schedules.js";
import type {
  ClaimRequest,
  ClaimResult,
  Fence,
  HeartbeatResult,
  ScheduleInterest,
  WorkerInfo,
  WorkerLoad,
  WorkerRecord,
} from "./worker.js";

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
export type { Batch, CommitResult, KeyChange, KeyMove, RefusedStart, StartReplacement } from "./commit.js";
export type { Hint } from "./hint.js";
export type {
  AgePosition,
  ChildKey,
  ChildRun,
  Maintenance,
  PausedQueue,
  RootRun,
  RouteBacklog,
  RunSample,
  WorkerRoutes,
} from "./maintenance.js";
export type { PoolSizes, StoreOptions } from "./options.js";
export type { MinuteFigures, RunQuery } from "./questions.js";
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
  OccurrencePosition,
  OccurrenceRecord,
  PendingCount,
  ScheduleApp,
  ScheduleBatch,
  ScheduleChange,
  ScheduleRecord,
  ScheduleResult,
  Schedules,
} from "./schedules.js";
export type { DatabaseSize, TableName } from "./size.js";
export type { StartDeadline, StartDeadlines } from "./start-deadlines.js";
export type {
  ClaimedTask,
  ClaimRequest,
  ClaimResult,
  ExecutingCount,
  Fence,
  HeartbeatResult,
  Route,
  ScheduleInterest,
  WorkerInfo,
  WorkerLoad,
  WorkerRecord,
} from "./worker.js";

export interface SentInTransaction {
  /** Receivers that have no task: they do not exist or have ended. */
  readonly undeliverable: readonly string[];
  /** Receivers that are parked and have not started; they got no message. */
  readonly notStarted: readonly string[];
}

/** An open transaction on a connection of its own, for steps whose writes commit together with their record. */
export interface StoreTransaction {
  /** What the user's code gets as `tx`: a `pg` client, a `mysql2` promise connection, a SQLite database. */
  readonly handle: unknown;
  /**
   * Applies the batch in this transaction and commits the transaction; any result but "committed" means that the
   * transaction was rolled back. The handle cannot be used afterwards.
   *
   * @throws TransactionError, with nothing written, when the transaction has already ended or cannot be committed
   */
  commit(batch: Batch): Promise<CommitResult>;
  /** @param options.discard closes the connection, because the user's code may still be running and use the handle */
  rollback(options?: { readonly discard?: boolean }): Promise<void>;
}

/** What a client has seen of a run before it sends a message that is right only for this state. */
export interface SeenRun {
  /** The number of undrained messages. */
  readonly pendingMessages: number;
  /** The number of the last event; null: the log may have grown. */
  readonly lastEvent: number | null;
}

/** All operations that Pawl needs from a database. The memory store is their executable specification. */
export interface Store {
  /** For display, without a password: "sqlite ./pawl.db", "postgres localhost:5432/app". */
  readonly description: string;

  /**
   * Creates the tables or brings them up to date. Many processes may call this at once, and after a process was killed
   * halfway the next call completes the migration.
   */
  migrate(): Promise<void>;
  /** The versions of the migrations that are not applied yet. */
  pendingMigrations(): Promise<readonly number[]>;

  /** Applies the whole batch or nothing. This is the only way to change runs. */
  commit(batch: Batch): Promise<CommitResult>;
  /** Creates runs in the caller's own open transaction, which the caller commits. Starts are refused as in `commit`. */
  startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{
    /** When the runs were created, by the store's clock. */
    readonly at: number;
    /** The starts that were refused because another run holds their key. */
    readonly refused: readonly RefusedStart[];
  }>;
  /**
   * Puts messages into inboxes, as `Transition.messages` does. Returns the receivers that have no task.
   *
   * @param seen for messages to one run: nothing is delivered, and the run is undeliverable, unless it still is like this
   */
  send(
    messages: readonly Message[],
    seen?: SeenRun,
  ): Promise<{
    /** Receivers that have no task: they do not exist or have ended. */
    readonly undeliverable: readonly string[];
  }>;
  /**
   * Does the same as `send`, in the caller's own open transaction, which the caller commits. A run that is parked and
   * has not started gets no message, because the message would start it before its time; `notStarted` lists it.
   */
  sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction>;
  /** Opens a transaction on a connection of its own, for a transactional step. */
  beginTransaction(): Promise<StoreTransaction>;

  /**
   * Makes the worker the owner of due tasks. Ready tasks are claimed by priority, then by due time. Parked tasks that
   * have become due may be claimed by due time alone, but an endless stream of ready tasks must not starve them.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /**
   * Registers a worker as live, with a higher epoch than any it had before. Tasks that it owned under earlier epochs
   * become ready.
   */
  registerWorker(worker: WorkerInfo): Promise<Fence>;
  /**
   * Renews the worker's lease, reaps workers whose lease has expired, and reports which runs of the worker have
   * messages and which queues are paused.
   *
   * @param load what the worker reports of itself, for `WorkerRecord`; undefined leaves the stored load as it is
   * @param schedules the schedules about which the result tells
   */
  heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult>;
  /**
   * Marks a worker dead and makes the tasks that it still owned ready. Here and after reaping, the store always sends a
   * hint, even if no task was freed: only the dead worker knew when the runs that it had parked become due, so the
   * other workers must claim in order to learn it.
   */
  deregisterWorker(fence: Fence): Promise<void>;

  /** The current instant of the store's clock. */
  now(): Promise<number>;
  /** Reads one run; null if the run does not exist. */
  run(id: string): Promise<RunRecord | null>;
  /** Reads runs, in the order of `ids`; runs that do not exist are missing from the result. */
  runsById(ids: readonly string[]): Promise<readonly RunRecord[]>;
  /** A page of the runs that match the filter, newest first. */
  runs(filter: RunFilter): Promise<readonly RunRecord[]>;
  /** The tasks of these runs; runs that have ended have none. */
  tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]>;
  /** The tasks that this fence owns, for a worker that did not receive the answer to a claim or a commit. */
  ownedTasks(fence: Fence): Promise<readonly TaskRecord[]>;
  /** The ids of the runs that this fence owns and that have undrained messages, without renewing the lease. */
  ownedWithMessages(fence: Fence): Promise<readonly string[]>;
  /** A page of one run's log, in order, beginning after event number `after`. */
  log(
    runId: string,
    page: {
      /** The number of the event before the page; 0 for the first page. */
      readonly after: number;
      /** The maximum number of events. */
      readonly limit: number;
    },
  ): Promise<readonly StoredEvent[]>;
  /** Reads whole logs, for replay. Runs without events may be missing from the map. */
  logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>>;
  /** The undrained messages of these runs, oldest first. */
  inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>>;
  /** The cursors of the resumable steps of a run. */
  cursors(runId: string): Promise<readonly CursorRow[]>;
  /** All known workers, live and dead. */
  workers(): Promise<readonly WorkerRecord[]>;

  /** Stores what clients without the code need to know of these workflows, see `WorkflowRegistration`. */
  registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void>;
  /** What was registered under this name; null if nothing was. */
  workflow(name: string): Promise<WorkflowRecord | null>;

  /** Calls for operators and housekeeping; no run waits for them. */
  readonly maintenance: Maintenance;
  /** Runs of workflows with limits: their classes, lanes and slots. */
  readonly limits: Limits;
  /** Starts that are gathered before their run begins: debounced ones, and those of workflows with `batch`. */
  readonly gatherings: Gatherings;
  /** Schedules and their occurrences. */
  readonly schedules: Schedules;

  /** Whether `watch` also reports commits of other processes. If it does not, a process finds them by polling. */
  readonly hasCrossProcessHints: boolean;
  /** Calls the listener with hints about commits of this and other processes, until the returned function is called. */
  watch(listener: (hint: Hint) => void): () => void;
  /** Closes all connections. Calls that are under way may fail. */
  close(): Promise<void>;
}
