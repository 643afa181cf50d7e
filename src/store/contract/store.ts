/**
 * What Pawl asks of a database.
 *
 * A store keeps rows and has no opinion about workflows: it never looks inside `data`, `input` or `waiting`, and it takes
 * no decision that the callers could take. Everything that happens to runs goes through `commit`, one batch in one
 * transaction. `memory.ts` is the executable specification; `pawl/testing` exports the suite that every store passes.
 *
 * All instants are epoch milliseconds of the store's own clock, all payloads are text that was encoded by the caller.
 */

import type { NewEvent, StoredEvent } from "../../core/run/event.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Upkeep } from "./maintenance.js";

export type { Audit, AuditedRun, AuditedTask, StrayTable } from "./audit.js";
export type {
  Age,
  Backlog,
  Child,
  ChildKey,
  Executing,
  PausedQueue,
  Root,
  RunSample,
  Upkeep,
  WorkerRoutes,
} from "./maintenance.js";
export type { NewEvent, StoredEvent };

/** Proof of being the live owner of a worker row. A write under a stale fence is refused as a whole. */
export interface Fence {
  readonly workerId: string;
  readonly epoch: number;
}

export type RunStatus = "pending" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled";
export type ActiveStatus = "pending" | "waiting" | "paused";
export type TerminalStatus = "completed" | "failed" | "canceled";

/** What is fixed when a run is born. It is the log's entry number zero, kept in the run's row and never changed. */
export interface Birth {
  readonly id: string;
  readonly workflow: string;
  /** "" when the definition has none. */
  readonly version: string;
  readonly queue: string;
  /** Higher goes first. */
  readonly priority: number;
  readonly input: string;
  readonly heroType: string | null;
  readonly heroId: string | null;
  readonly tags: readonly string[];
  /** Idempotency key, unique per workflow for as long as the run's row exists. */
  readonly startKey: string | null;
  readonly parentId: string | null;
  /** The parent's log key of the call that started this run, and the index among its siblings (null unless of a map). */
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
}

export interface NewRun extends Birth {
  /** What claims know its task by; undefined: the name of the workflow. */
  readonly route?: string;
  /** Unique among active runs; null when several are allowed. Cleared by the store when the run finishes. */
  readonly heroKey: string | null;
  /**
   * When the run's task becomes due. `now`: at once. `at`/`in`: at an instant, or so many milliseconds after the commit.
   * `held`: never by itself, `Transition.release` frees it. `owned`: it belongs to the committing worker from birth
   * (its first delivery), allowed only in a fenced commit.
   */
  readonly due: { readonly kind: "now" | "held" | "owned" } | { readonly kind: "at" | "in"; readonly ms: number };
}

/** A column that a store could not read. The field of the record has a stand-in. */
export interface Damage {
  readonly column: string;
  readonly problem: string;
}

/** A run's row as it is read. `status` is "running" exactly while a worker owns its task. */
export interface RunRecord extends Birth {
  readonly status: RunStatus;
  readonly output: string | null;
  readonly error: string | null;
  /**
   * Encoded by the caller at the last park: what the run waits for. Of a run that has ended: the number of events in its
   * log, written by the store, so that a log that lost its end can be told from one that never had it.
   */
  readonly waiting: string | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Only of a damaged row. What the caller encoded is not looked into here. */
  readonly damage?: Damage;
}

/** A task's row: what is due, and who has it. It exists exactly as long as its run is not terminal. */
export interface TaskRecord {
  readonly runId: string;
  /** What claims know it by, see `Next`. */
  readonly route: string;
  readonly state: "parked" | "ready" | "owned";
  /** When it becomes (or became) due; null while only a message can move it. */
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly epoch: number | null;
  /** Claims since it was last parked by its owner. */
  readonly deliveries: number;
  /** Undrained rows in its inbox. */
  readonly mail: number;
}

/** A message for a run's inbox, addressed to a run that may be owned by anybody. */
export interface Mail {
  readonly to: string;
  readonly kind: string;
  readonly data: string;
}

export interface InboxRow {
  /** Grows in the order of arrival within a run. */
  readonly id: number;
  readonly kind: string;
  readonly data: string;
  readonly at: number;
}

export interface CursorWrite {
  readonly node: string;
  /** undefined leaves the column as it is. */
  readonly cursor?: string | null;
  readonly progress?: string | null;
}

export interface CursorRow {
  readonly node: string;
  readonly cursor: string | null;
  readonly progress: string | null;
  readonly at: number;
}

/** What becomes of a run's task, and of the columns of its row that are computed from the log. */
export type Next =
  /** Stays with its owner; only in a fenced commit. No row of `runs` or `tasks` is touched. */
  | { readonly kind: "keep" }
  /**
   * Owner is cleared, deliveries go back to 0, `status` and `waiting` are written, `startedAt` is written unless set.
   * The task becomes due at the earlier of `wakeAt` (an instant) and `wakeIn` (milliseconds after the commit); with both
   * null only mail or a commit can move it. wakeIn 0 (or an instant that has passed) makes it ready.
   * `route` and `priority` are written to the task alone; the run's row keeps what it was born with.
   * `keepsDue`, only in a client's commit: the task stays ready, parked or held as it is, and `wakeAt` and `wakeIn` are
   * null. A client that writes to a run which has not begun cannot know when it is to begin: its parent may release it,
   * or its time may come, between the client's reads and its commit.
   * Fenced, and mail came that this commit does not drain: the events are written, the run is NOT parked but kept, and
   * `CommitResult.kept` names it. Nobody is woken then: the owner goes on by itself.
   */
  | {
      readonly kind: "park";
      readonly status: ActiveStatus;
      readonly waiting: string | null;
      readonly startedAt: number | "now" | null;
      readonly wakeAt: number | null;
      readonly wakeIn: number | null;
      /**
       * Which workers are asked for it from now on: what claims and hints know the task by. undefined leaves it as it
       * is. At birth it is the name of the workflow.
       */
      readonly route?: string;
      /** undefined leaves it as it is. */
      readonly priority?: number;
      readonly keepsDue?: true;
    }
  /** The task's row is deleted and the run's row gets its end; `startedAt` as for park. Refused while it has messages. */
  | {
      readonly kind: "finish";
      readonly status: TerminalStatus;
      readonly output: string | null;
      readonly error: string | null;
      readonly startedAt: number | "now" | null;
    };

/** All that one commit does to one run. A batch holds at most one per run. */
export interface Transition {
  readonly runId: string;
  /** How many events the log has before this; the first of `events` becomes number `after + 1`. */
  readonly after: number;
  /** Written as ONE row of the events table (a row spans several events when there are several). May be empty. */
  readonly events: readonly NewEvent[];
  readonly next: Next;
  /** Inbox rows whose content is now in `events`: deleted, and the task's mail count lowered by as many. */
  readonly drained: readonly number[];
  /** Children, born in the same transaction. One whose id exists already is passed over (it is our own). */
  readonly starts: readonly NewRun[];
  /** Messages to other runs: stored, their mail counts raised, and a parked addressee made ready at once. To a run without a task: dropped. */
  readonly mail: readonly Mail[];
  /** Held runs to be made ready now. Those that are not parked any more are passed over. */
  readonly release: readonly string[];
  readonly cursors: readonly CursorWrite[];
}

export interface Batch {
  /**
   * A worker's fence, checked against its row in the same transaction: `id`, `epoch` and `live` must match.
   * null: a client writes. Then every run of the batch must be unowned with no undrained mail, or the batch conflicts.
   */
  readonly fence: Fence | null;
  /**
   * The caller guarantees: no run has two transitions, and no run that is parked, finished or drained here is an
   * addressee of `mail` or `release` in the same batch. Stores sort by run id where the order of locks matters.
   */
  readonly transitions: readonly Transition[];
  /** Runs that are not children of anything in the batch. */
  readonly starts: readonly NewRun[];
}

/** A start that the database refused because of a key; `existing` is the run that has it. */
export interface Refusal {
  readonly runId: string;
  readonly reason: "startKey" | "heroKey";
  readonly existing: RunRecord;
}

export type CommitResult =
  | {
      readonly kind: "committed";
      /** The instant every event of the batch was stamped with. */
      readonly at: number;
      /** Runs that were to be parked but have mail, see `Next`. */
      readonly kept: readonly string[];
      /**
       * Runs of this batch that stay with their owner (`next.kind` "keep") and have undrained messages that this commit does
       * not drain, as of the commit's own snapshot. Messages that the batch itself delivers may be missing. Only in a fenced
       * commit: an owner learns of an acknowledged pause or cancel this way, before its next heartbeat.
       */
      readonly mailed: readonly string[];
      /** `Batch.starts` that were refused; everything else is written. A start whose own id exists already is not refused. */
      readonly refused: readonly Refusal[];
    }
  /** The fence is gone. Nothing was written. */
  | { readonly kind: "fenced" }
  /**
   * This run's log does not end at `after` (or, without a fence, it is owned or has mail). Nothing was written. `unread`: it
   * was to finish, and has messages that this commit does not drain: what was acknowledged must not vanish with its inbox.
   */
  | { readonly kind: "conflict"; readonly runId: string; readonly unread?: true };

export interface Route {
  readonly workflow: string;
  readonly version: string;
}

export interface ClaimRequest {
  readonly fence: Fence;
  readonly routes: readonly Route[];
  /** In all, and per route, so that one busy workflow cannot starve the others. */
  readonly limit: number;
  readonly limitPerRoute: number;
}

export interface Claimed {
  readonly run: RunRecord;
  /** Claims since the run was last parked by an owner, this one included: 2 and more means its owner died. */
  readonly deliveries: number;
  readonly mail: number;
  /** True when the log is certainly empty, so that nobody needs to read it. */
  readonly fresh: boolean;
}

export type ClaimResult =
  | {
      readonly kind: "claimed";
      readonly at: number;
      readonly tasks: readonly Claimed[];
      /** When the next parked task of these routes becomes due, as far as known; null: none, or more are due already. */
      readonly nextDueAt: number | null;
    }
  | { readonly kind: "fenced" };

export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** On which its process can be asked how it is, if there is one. */
  readonly port: number | null;
  readonly routes: readonly Route[];
  readonly leaseMs: number;
}

export interface WorkerRecord extends WorkerInfo {
  readonly epoch: number;
  readonly live: boolean;
  readonly startedAt: number;
  readonly beatAt: number;
  /** How many tasks it owns now. */
  readonly owned: number;
  /** Only of a damaged row. */
  readonly damage?: Damage;
}

export interface BeatResult {
  /** False: this fence is dead. Nothing else was done. */
  readonly alive: boolean;
  /** Own runs that have undrained mail. */
  readonly mail: readonly string[];
  /** Workers that were silent for longer than their lease: marked dead first, then their tasks were made ready. */
  readonly reaped: readonly string[];
  /** The names of the queues that are paused; none if this fence is dead. */
  readonly pausedQueues: readonly string[];
}

export interface WorkflowRecord {
  readonly name: string;
  readonly queue: string;
  readonly version: string;
  readonly signature: string | null;
  readonly graph: string | null;
  readonly createdAt: number;
}

/** Idempotent: what is null stays as it is (a new one gets a queue of its own name and version ""), the rest overwrites. */
export interface WorkflowRegistration {
  readonly name: string;
  readonly queue: string | null;
  readonly version: string | null;
  readonly signature: string | null;
  readonly graph: string | null;
}

export interface RunFilter {
  readonly workflow?: string;
  readonly status?: RunStatus;
  /** Not terminal. */
  readonly active?: boolean;
  readonly heroType?: string;
  readonly heroId?: string;
  /** The idempotency key of its start; with `workflow` it names one run. */
  readonly startKey?: string;
  readonly tag?: string;
  /** null: only runs that no other run has started. */
  readonly parentId?: string | null;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly limit: number;
  /** Newest first: only runs that come after this one in that order (created_at desc, id desc). */
  readonly after?: { readonly createdAt: number; readonly id: string };
}

export interface SentInTransaction {
  /** The addressees that have no task (any more). */
  readonly undeliverable: readonly string[];
  readonly unbegun: readonly string[];
}

/** What may have changed: a reason to look, never a fact. Lost and repeated hints must do no harm. */
export type Hint =
  /** Tasks of these workflows became ready; an empty list: of workflows that the sender does not know. */
  | { readonly kind: "ready"; readonly workflows: readonly string[] }
  /** These runs got mail. Their owner drains it; if nobody owned them they are ready now. */
  | { readonly kind: "mail"; readonly runIds: readonly string[] }
  /** These runs ended. */
  | { readonly kind: "done"; readonly runIds: readonly string[] }
  /** Something may have been missed (a reconnect, too many ids to name): look at everything. */
  | { readonly kind: "anything" };

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

/** How many connections one process may have open at most. They are opened when they are needed. */
export interface PoolSizes {
  /** For what Pawl itself reads and writes. Default 6 on PostgreSQL, 10 on MySQL. */
  readonly max?: number;
  /** For `ctx.transaction`, which keeps one for as long as its function runs. Default as for `max`. */
  readonly transactions?: number;
}

export interface StoreOptions {
  /** A virtual clock: replaces the database's now for stamps and due times. Leases and heartbeats stay on real time. */
  readonly clock?: () => number;
  /** False switches off wake-ups between processes (polling must be enough alone). Default true. */
  readonly notify?: boolean;
  /** PostgreSQL: the schema the tables live in. */
  readonly schema?: string;
  /** A libSQL server (Turso, sqld): the token that lets this process in. It may be in the URL instead: `?authToken=…`. */
  readonly authToken?: string;
  /**
   * PostgreSQL: whether a pooler stands in between that shares its sessions, as PgBouncer does in transaction mode (so do
   * Supabase's, Neon's and RDS Proxy). True: no prepared statements, session settings, `LISTEN` or session locks are used.
   * Default "auto": a pooler is noticed, and said in the log once.
   */
  readonly pooled?: boolean | "auto";
  /**
   * PostgreSQL, behind a pooler: the URL of the server itself, for one connection that listens for other processes' changes.
   * Without it they are found by polling.
   */
  readonly listenUrl?: string | undefined;
  /** PostgreSQL and MySQL: how many connections this process may have open. */
  readonly pool?: PoolSizes;
  /**
   * Told of trouble that was dealt with (a retried deadlock), and once, without an error, that the server cannot be reached
   * and that it can be again.
   */
  readonly onTrouble?: (what: string, error?: unknown) => void;
  /** Where the store's timers, clocks and random numbers come from. Default: the process. */
  readonly runtime?: Runtime;
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
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }>;
  /** Puts messages into inboxes, as `Transition.mail` does. Returns the addressees that have no task (any more). */
  send(mail: readonly Mail[]): Promise<{ readonly undeliverable: readonly string[] }>;
  /**
   * The same on the caller's own open transaction; the caller commits. A run that is parked and has not begun gets nothing,
   * as a message would let it begin before its time; it is named in `unbegun`.
   */
  sendInTransaction(tx: unknown, mail: readonly Mail[]): Promise<SentInTransaction>;
  begin(): Promise<StoreTransaction>;

  /**
   * Takes due tasks: of what is ready, higher priority first, then those due earlier. Parked tasks whose time has come
   * may be served by time alone, but must not wait behind a never-ending stream of ready ones.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /** Registers or revives a worker: `live`, with an epoch higher than any it had. */
  enlist(worker: WorkerInfo): Promise<Fence>;
  /** Renews the lease, reaps silent workers, reports mail and which queues are paused. */
  beat(fence: Fence): Promise<BeatResult>;
  /**
   * A worker leaves: marked dead, what it still owned is made ready. Here and when workers are reaped, others are told
   * to look in any case: only the one that is gone knew when the runs that it had parked become due.
   */
  retire(fence: Fence): Promise<void>;

  now(): Promise<number>;
  run(id: string): Promise<RunRecord | null>;
  runsById(ids: readonly string[]): Promise<readonly RunRecord[]>;
  runs(filter: RunFilter): Promise<readonly RunRecord[]>;
  tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]>;
  /** The tasks that this fence owns: for a worker that did not hear what became of a claim or a commit. */
  owned(fence: Fence): Promise<readonly TaskRecord[]>;
  /** Those of them that have undrained mail, as `beat` reports them; but this only looks. */
  mailed(fence: Fence): Promise<readonly string[]>;
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
  readonly upkeep: Upkeep;

  /** Whether `watch` hears of other processes' commits too. If not, whoever waits for them has to look. */
  readonly hearsOthers: boolean;
  /** Calls the listener with hints about this and other processes' commits until the returned function is called. */
  watch(listener: (hint: Hint) => void): () => void;
  close(): Promise<void>;
}
