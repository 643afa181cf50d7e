/** The PostgreSQL store, composed of its parts. */

import { FencedError, StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  CursorRow,
  Fence,
  HeartbeatResult,
  Hint,
  InboxRow,
  Message,
  NewRun,
  RefusedStart,
  RunFilter,
  RunRecord,
  ScheduleInterest,
  SeenRun,
  SentInTransaction,
  Store,
  StoredEvent,
  StoreOptions,
  StoreTransaction,
  TaskRecord,
  WorkerInfo,
  WorkerLoad,
  WorkerRecord,
  WorkflowRecord,
  WorkflowRegistration,
} from "../contract/store.js";
import { hintsOfCommit, hintsOfMessages, hintsOfStarts } from "../shared/hint-emitter.js";
import { closeTimeoutMs } from "../shared/reachability.js";
import type { SqlLimits } from "../sql/limits/limits.js";
import { SqlMaintenance } from "../sql/maintenance.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { Claimer } from "./claim/claim.js";
import { ClaimBoundsTracker } from "./claim/claim-bounds.js";
import { createSqlClock, type SqlClock } from "./clock.js";
import { Committer, needsTransaction } from "./commit/commit.js";
import type { Database } from "./connection/database.js";
import type { ExecuteQuery, PgModule } from "./connection/driver.js";
import { isFailedOptimisticCommit, runOfDuplicateEvent } from "./connection/errors.js";
import { HintExchange } from "./connection/hint-exchange.js";
import { createPostgresDialect } from "./dialect.js";
import { createPostgresLimits, type PostgresLimitsPort } from "./limits.js";
import { LostWriteDetector } from "./lost-write-detector.js";
import { createMigrationPort } from "./migrate.js";
import { OperationTracker } from "./operation-tracker.js";
import { createMaintenancePort, createSchedules, type PortServices } from "./ports.js";
import { migrationsOf } from "./schema.js";
import type { Tables } from "./tables.js";
import { assertTransaction, PostgresTransaction } from "./transaction.js";
import { fencedHeartbeat, Workers } from "./workers.js";

export interface PostgresStoreParts {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly url: string;
  readonly db: Database;
  readonly tables: Tables;
  readonly description: string;
  readonly options: StoreOptions;
}

export class PostgresStore implements Store {
  readonly description: string;
  readonly maintenance: SqlMaintenance;
  readonly limits: SqlLimits;
  readonly schedules: Store["schedules"];
  readonly gatherings: Store["gatherings"];
  readonly #parts: PostgresStoreParts;
  readonly #db: Database;
  readonly #clock: SqlClock;
  readonly #reads: SqlReads;
  readonly #committer: Committer;
  readonly #claimer: Claimer;
  readonly #workers: Workers;
  readonly #lostWriteDetector: LostWriteDetector;
  readonly #hints: HintExchange;
  readonly #runtime: Runtime;
  readonly #transactions = new Set<PostgresTransaction>();
  readonly #write: ExecuteQuery;
  readonly #operations = new OperationTracker();
  #closing: Promise<void> | null = null;

  constructor(parts: PostgresStoreParts) {
    const { runtime, db, tables, description, options } = parts;
    this.#parts = parts;
    const { pg, url } = parts;
    this.#hints = new HintExchange({ runtime, pg, db, url, schema: tables.schema, options, onWarning: this.#warn });
    this.#runtime = runtime;
    this.description = description;
    this.#db = db;
    this.#write = (query) => db.write(query);
    this.#clock = createSqlClock(options.clock);
    const dialect = createPostgresDialect(tables, options.clock);
    this.#reads = new SqlReads({ query: (text, values) => db.read({ text, values }) }, dialect);
    const committer = () => this.#committer;
    const ports: PortServices = { db, operations: this.#operations, committer, emitHints: this.#hints.emit };
    this.maintenance = new SqlMaintenance(createMaintenancePort(ports), dialect);
    ({ schedules: this.schedules, gatherings: this.gatherings } = createSchedules(ports, tables, dialect));
    const underFence: PostgresLimitsPort["underFence"] = <R extends { readonly kind: string }>(
      fence: Fence,
      work: () => Promise<R>,
    ) =>
      this.#fencedIfLost<R | { readonly kind: "fenced" }>({ kind: "fenced" }, () => {
        this.#lostWriteDetector.assertNotLost(fence);
        return this.#retryIfServerMissed(work);
      });
    this.limits = createPostgresLimits({ ...ports, underFence }, tables, dialect);
    this.#lostWriteDetector = new LostWriteDetector(tables);
    this.#committer = new Committer(tables, this.#clock, (runId, end) =>
      this.#lostWriteDetector.isLogEndKnown(runId, end),
    );
    this.#claimer = new Claimer(tables, this.#clock, new ClaimBoundsTracker(() => runtime.monotonic()), runtime);
    const inTransaction = <T>(work: (execute: ExecuteQuery) => Promise<T>) => db.transaction(work);
    const onTasksFreed = () => this.#hints.emit([{ kind: "ready", workflows: [] }]);
    this.#workers = new Workers(tables, this.#clock, inTransaction, onTasksFreed);
    db.setLostWriteDetector(this.#lostWriteDetector);
  }

  /** Does not report errors of an unreachable server, because `ServerReachability` has reported the outage. */
  readonly #warn = (message: string, error: unknown): void => {
    if (!(error instanceof StoreError && error.unreachable)) this.#parts.options.onWarning?.(message, error);
  };

  migrate(): Promise<void> {
    const { tables } = this.#parts;
    return this.#operations.run(() => migrate(createMigrationPort(this.#db, tables), migrationsOf(tables)));
  }

  pendingMigrations(): Promise<readonly number[]> {
    const { tables } = this.#parts;
    return this.#operations.run(() => pendingMigrations(createMigrationPort(this.#db, tables), migrationsOf(tables)));
  }

  commit(batch: Batch): Promise<CommitResult> {
    return this.#operations.run(() => this.#commit(batch));
  }

  async #commit(batch: Batch): Promise<CommitResult> {
    if (needsTransaction(batch)) return (await this.#begin()).commit(batch);
    const { fence } = batch;
    try {
      const apply = () => this.#applyOptimistically(fence === null ? this.#write : this.#writeWithFence(fence), batch);
      const result = await this.#retryIfServerMissed(apply);
      this.#afterCommit(batch, result);
      return result;
    } catch (error) {
      if (error instanceof FencedError) return { kind: "fenced" };
      this.#lostWriteDetector.forgetLogEnds(batch);
      if (runOfDuplicateEvent(error) === null) throw error;
      return this.#committer.conflictOf((query) => this.#db.read(query), batch, error);
    }
  }

  /** Checks the fence right before sending, because a new connection may just have revealed lost writes. */
  #writeWithFence(fence: Fence): ExecuteQuery {
    const check = () => this.#lostWriteDetector.assertNotLost(fence);
    return (query) => this.#db.write(query, check);
  }

  /** Retries once if "fenced" may only mean that a pooler sent the statement to another server or sent it too late. */
  async #retryIfServerMissed<T extends { readonly kind: string }>(operation: () => Promise<T>): Promise<T> {
    const target = this.#db.currentTarget();
    const result = await operation();
    return result.kind === "fenced" && (await this.#db.mayHaveMissed(target)) ? operation() : result;
  }

  async #applyOptimistically(execute: ExecuteQuery, batch: Batch): Promise<CommitResult> {
    try {
      return await this.#committer.apply(execute, batch, true);
    } catch (error) {
      // Nothing was written: a new run exists already, or a run that was to finish has messages or another owner.
      if (!isFailedOptimisticCommit(error)) throw error;
      return this.#committer.apply(execute, batch);
    }
  }

  #afterCommit(batch: Batch, result: CommitResult): void {
    if (result.kind === "committed") this.#lostWriteDetector.recordCommit(batch, result);
    this.#hints.emit(hintsOfCommit(batch, result));
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
    assertTransaction(tx);
    // The query is sent without its name: the caller's connection may have prepared another schema's query under it.
    const result = await this.#committer.start(
      async ({ text, values = [] }) => (await tx.query(text, values)).rows,
      starts,
    );
    await this.#hints.notifyInTransaction(tx, hintsOfStarts(starts));
    return result;
  }

  async sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction> {
    assertTransaction(tx);
    const execute: ExecuteQuery = async ({ text, values = [] }) => (await tx.query(text, values)).rows;
    const notStarted = await this.#committer.findNotStarted(execute, messages);
    const deliverableMessages = messages.filter(({ to }) => !notStarted.includes(to));
    const deliveredIds = await this.#committer.send(execute, deliverableMessages);
    await this.#hints.notifyInTransaction(tx, hintsOfMessages(deliverableMessages));
    return { undeliverable: deliverableMessages.map(({ to }) => to).filter((to) => !deliveredIds.has(to)), notStarted };
  }

  async send(messages: readonly Message[], seen?: SeenRun): Promise<{ readonly undeliverable: readonly string[] }> {
    const deliver = () =>
      seen === undefined
        ? this.#committer.send(this.#write, messages)
        : this.#db.transaction((execute) => this.#committer.sendIfUnchanged(execute, messages, seen));
    const deliveredIds = await this.#operations.run(deliver);
    this.#hints.emit(hintsOfMessages(messages));
    return { undeliverable: messages.map(({ to }) => to).filter((to) => !deliveredIds.has(to)) };
  }

  beginTransaction(): Promise<StoreTransaction> {
    return this.#operations.run(() => this.#begin());
  }

  async #begin(): Promise<StoreTransaction> {
    const transaction = await PostgresTransaction.begin(
      this.#db,
      this.#committer,
      this.#operations,
      this.#lostWriteDetector,
      (batch, result) => this.#afterCommit(batch, result),
      (transaction) => this.#transactions.delete(transaction),
    );
    this.#transactions.add(transaction);
    return transaction;
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    const write = this.#writeWithFence(request.fence);
    const claim = () => this.#claimer.claim(write, request);
    return this.#fencedIfLost({ kind: "fenced" }, () => this.#retryIfServerMissed(claim));
  }

  /** Returns `fenced` when the database has lost the writes of the fence. */
  #fencedIfLost<T>(fenced: T, operation: () => Promise<T>): Promise<T> {
    return this.#operations.run(operation).catch((error: unknown) => {
      if (error instanceof FencedError) return fenced;
      throw error;
    });
  }

  async registerWorker(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.addLease(worker.id, worker.leaseMs);
    // Behind a pooler, the worker's writes will be valid only on the server that answers now.
    await this.#operations.run(() => this.#db.checkServer());
    const fence = await this.#operations.run(() =>
      this.#workers.register(worker, this.#lostWriteDetector.epochOf(worker.id)),
    );
    this.#lostWriteDetector.recordEpoch(fence);
    return fence;
  }

  heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult> {
    // Executing a heartbeat twice does no harm, so it is retried like a read.
    const read: ExecuteQuery = (query) => this.#db.read(query, () => this.#lostWriteDetector.assertNotLost(fence));
    return this.#fencedIfLost(fencedHeartbeat, () => this.#workers.heartbeat(read, fence, load, schedules));
  }

  async deregisterWorker(fence: Fence): Promise<void> {
    await this.#operations.run(() => this.#workers.deregister(fence));
    this.#db.deadline.removeLease(fence.workerId);
  }

  async now(): Promise<number> {
    let parameterCount = 0;
    const text = `SELECT ${this.#clock.now(() => `$${++parameterCount}`)} AS now`;
    const [row] = await this.#operations.run(() => this.#db.read({ text, values: this.#clock.values() }));
    return Number(row?.now);
  }

  run(id: string): Promise<RunRecord | null> {
    return this.#operations.run(() => this.#reads.run(id));
  }

  runsById(ids: readonly string[]): Promise<readonly RunRecord[]> {
    return this.#operations.run(() => this.#reads.runsById(ids));
  }

  runs(filter: RunFilter): Promise<readonly RunRecord[]> {
    return this.#operations.run(() => this.#reads.runs(filter));
  }

  tasks(runIds: readonly string[]): Promise<readonly TaskRecord[]> {
    return this.#operations.run(() => this.#reads.tasks(runIds));
  }

  ownedTasks(fence: Fence): Promise<readonly TaskRecord[]> {
    return this.#operations.run(() => this.#reads.ownedTasks(fence));
  }

  ownedWithMessages(fence: Fence): Promise<readonly string[]> {
    return this.#operations.run(() => this.#reads.ownedWithMessages(fence));
  }

  log(runId: string, page: { readonly after: number; readonly limit: number }): Promise<readonly StoredEvent[]> {
    return this.#operations.run(() => this.#reads.log(runId, page));
  }

  logs(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly StoredEvent[]>> {
    return this.#operations.run(() => this.#reads.logs(runIds));
  }

  inbox(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly InboxRow[]>> {
    return this.#operations.run(() => this.#reads.inbox(runIds));
  }

  cursors(runId: string): Promise<readonly CursorRow[]> {
    return this.#operations.run(() => this.#reads.cursors(runId));
  }

  workers(): Promise<readonly WorkerRecord[]> {
    return this.#operations.run(() => this.#reads.workers());
  }

  registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    return this.#operations.run(() => this.#reads.registerWorkflows(workflows));
  }

  workflow(name: string): Promise<WorkflowRecord | null> {
    return this.#operations.run(() => this.#reads.workflow(name));
  }

  get hasCrossProcessHints(): boolean {
    return this.#hints.isCrossProcess;
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Without this timeout, a server that vanished without closing its connections would block closing indefinitely.
    const closeTimer = this.#runtime.setTimeout(() => this.#db.destroyConnections(), closeTimeoutMs);
    await Promise.all([this.#operations.close(), this.#hints.stopReceiving()]);
    await this.#hints.flush();
    for (const transaction of this.#transactions) transaction.abandon();
    await this.#db.close();
    this.#runtime.clearTimeout(closeTimer);
  }
}
