/** The SQLite store. Each method runs a transaction, or a read, that is defined in the files beside this one. */

import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  ClaimRequest,
  ClaimResult,
  CommitResult,
  Fence,
  HeartbeatResult,
  Hint,
  Message,
  NewRun,
  RefusedStart,
  ScheduleInterest,
  SeenRun,
  SentInTransaction,
  Store,
  StoreOptions,
  StoreTransaction,
  WorkerInfo,
  WorkerLoad,
  WorkflowRegistration,
} from "../contract/store.js";
import { HintEmitter, hintsOfCommit, hintsOfMessages, hintsOfStarts } from "../shared/hint-emitter.js";
import { SqlGatherings } from "../sql/gatherings.js";
import type { SqlLimits } from "../sql/limits/limits.js";
import { SqlMaintenance } from "../sql/maintenance.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { encodeLoad } from "../sql/records.js";
import type { SchedulePort } from "../sql/schedule-port.js";
import { SqlSchedules } from "../sql/schedules.js";
import { claim, readEmptyClaim } from "./claim.js";
import { applyBatch, isCommitted } from "./commit.js";
import { ConnectionAccess } from "./connection-access.js";
import { sqliteDialect } from "./dialect.js";
import type { SqliteDriver } from "./driver.js";
import { FileWatch } from "./file-watch.js";
import { createSqliteLimits } from "./limits.js";
import { sqliteLimitsDialect } from "./limits-dialect.js";
import { deliverMessages, deliverMessagesAsync } from "./messages.js";
import { migrationPort } from "./migrate.js";
import { type DatabaseLocation, openConnection } from "./open.js";
import { runScheduleTransaction } from "./schedule-transaction.js";
import { migrations } from "./schema.js";
import { startRuns } from "./starts.js";
import {
  asQueryable,
  type OpenTransaction,
  SqliteTransaction,
  sendInCallerTransaction,
  startInCallerTransaction,
} from "./transaction.js";
import { deregisterWorker, heartbeat, reap, registerWorker } from "./workers.js";

export class SqliteStore extends SqlReads implements Store {
  readonly description: string;
  readonly maintenance: SqlMaintenance;
  readonly limits: SqlLimits;
  readonly schedules: SqlSchedules;
  readonly gatherings: SqlGatherings;
  readonly #access: ConnectionAccess;
  readonly #options: StoreOptions;
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #hints = new HintEmitter();
  readonly #workflowRegistry: SqlReads;
  readonly #openTransactions = new WeakMap<object, OpenTransaction>();
  #listenerCount = 0;
  #fileWatch: FileWatch | undefined;
  #dataVersion: unknown;

  static async open(
    driver: SqliteDriver,
    location: DatabaseLocation,
    options: StoreOptions,
    runtime: Runtime,
  ): Promise<SqliteStore> {
    const connection = await openConnection(driver, location, runtime);
    return new SqliteStore(new ConnectionAccess(driver, location, connection, runtime), options, runtime);
  }

  private constructor(access: ConnectionAccess, options: StoreOptions, runtime: Runtime) {
    const clock = options.clock ?? (() => runtime.now());
    const dialect = sqliteDialect(clock, access.driver.engine);
    super({ query: (sql, values) => access.read((db) => db.query(sql, values)) }, dialect);
    this.#workflowRegistry = new SqlReads(
      { query: (sql, values) => access.write((db) => db.query(sql, values)) },
      dialect,
    );
    this.maintenance = new SqlMaintenance(
      {
        query: (sql, values) =>
          isSelect(sql)
            ? access.read((db) => db.query(sql, values))
            : access.writeWithoutTransaction((db) => db.query(sql, values)),
        writeAtomically: (writes) =>
          access.write((db) => {
            for (const { text, values } of writes) db.query(text, values);
          }),
        emitHints: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.limits = createSqliteLimits(access, dialect, (hints) => this.#hints.emit(hints));
    const schedulePort: SchedulePort = {
      query: (sql, values) =>
        isSelect(sql)
          ? access.read((db) => db.query(sql, values))
          : access.writeWithoutTransaction((db) => db.query(sql, values)),
      transaction: (work) => runScheduleTransaction(access, clock, work),
      emitHints: (hints) => this.#hints.emit(hints),
    };
    this.schedules = new SqlSchedules(schedulePort, dialect);
    this.gatherings = new SqlGatherings(schedulePort, sqliteLimitsDialect(dialect));
    this.description = access.location.description;
    this.#access = access;
    this.#options = options;
    this.#clock = clock;
    this.#runtime = runtime;
  }

  async migrate(): Promise<void> {
    await migrate(this.#migrationPort(), migrations);
  }

  async pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(this.#migrationPort(), migrations);
  }

  #migrationPort() {
    return migrationPort(
      (work) => this.#access.read(work),
      (work) => this.#access.write(work),
      this.#runtime,
    );
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const result = await this.#access.write((db) => applyBatch(db, batch, this.#clock()), isCommitted);
    this.#hints.emit(hintsOfCommit(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
    const at = this.#clock();
    const openTransaction = typeof tx === "object" && tx !== null ? this.#openTransactions.get(tx) : undefined;
    if (openTransaction === undefined)
      return { at, refused: await startInCallerTransaction(this.#access, tx, starts, at) };
    openTransaction.guard.assertUsable();
    openTransaction.startedRuns.push(...starts);
    return { at, refused: startRuns(openTransaction.db, starts, null, at) };
  }

  async sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction> {
    const at = this.#clock();
    const openTransaction = typeof tx === "object" && tx !== null ? this.#openTransactions.get(tx) : undefined;
    openTransaction?.guard.assertUsable();
    const result = await (openTransaction === undefined
      ? sendInCallerTransaction(this.#access, tx, messages, at)
      : deliverMessagesAsync(asQueryable(openTransaction.db), messages, at));
    // The caller has not committed yet, so a worker may find nothing now; it finds the messages at its next poll.
    this.#hints.emit(hintsOfMessages(messages));
    return result;
  }

  async send(messages: readonly Message[], seen?: SeenRun): Promise<{ readonly undeliverable: readonly string[] }> {
    const undeliverable = await this.#access.write((db) => deliverMessages(db, messages, this.#clock(), seen));
    this.#hints.emit(hintsOfMessages(messages));
    return { undeliverable };
  }

  async beginTransaction(): Promise<StoreTransaction> {
    const transaction = await this.#access.begin();
    const storeTransaction = new SqliteTransaction(
      this.#access,
      transaction,
      this.#clock,
      this.#runtime,
      (batch, result, started) => {
        this.#hints.emit(hintsOfCommit(batch, result));
        if (isCommitted(result)) this.#hints.emit(hintsOfStarts(started));
      },
    );
    this.#openTransactions.set(storeTransaction.handle, storeTransaction.openTransaction);
    return storeTransaction;
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const emptyClaim = await this.#access.read((db) => readEmptyClaim(db, request, this.#clock()));
    return emptyClaim ?? this.#access.write((db) => claim(db, request, this.#clock()));
  }

  async registerWorker(worker: WorkerInfo): Promise<Fence> {
    const { fence, freedTaskCount } = await this.#access.write((db) =>
      registerWorker(db, worker, this.#clock(), this.#runtime.now()),
    );
    if (freedTaskCount > 0) this.#emitReadyHint();
    return fence;
  }

  async heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult> {
    const { hasExpiredWorkers, ...result } = await this.#access.writeWithoutTransaction((db) =>
      heartbeat(db, fence, { load: encodeLoad(load), schedules }, this.#clock(), this.#runtime),
    );
    const reapedWorkerIds = hasExpiredWorkers
      ? await this.#access.write((db) => reap(db, fence.workerId, this.#clock(), this.#runtime.now()))
      : [];
    if (reapedWorkerIds.length > 0) this.#emitReadyHint();
    return { ...result, reapedWorkerIds };
  }

  async deregisterWorker(fence: Fence): Promise<void> {
    await this.#access.write((db) => deregisterWorker(db, fence, this.#clock()));
    this.#emitReadyHint();
  }

  #emitReadyHint(): void {
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#clock();
  }

  override registerWorkflows(workflows: readonly WorkflowRegistration[]): Promise<void> {
    return this.#workflowRegistry.registerWorkflows(workflows);
  }

  /**
   * True for a file, which the store watches unless `notify` is false, and for a database in memory, which no other
   * process can write to.
   */
  get hasCrossProcessHints(): boolean {
    return this.#access.location.file === null || this.#options.notify !== false;
  }

  watch(listener: (hint: Hint) => void): () => void {
    const unwatch = this.#hints.watch(listener);
    this.#listenerCount += 1;
    if (this.#listenerCount === 1) this.#fileWatch = this.#watchFile();
    let isStopped = false;
    return () => {
      if (isStopped) return;
      isStopped = true;
      unwatch();
      this.#listenerCount -= 1;
      if (this.#listenerCount === 0) this.#fileWatch?.stop();
    };
  }

  #watchFile(): FileWatch | undefined {
    const { file } = this.#access.location;
    if (file === null || this.#options.notify === false) return undefined;
    return new FileWatch({
      runtime: this.#runtime,
      file: `${file}-wal`,
      hasChanged: () => this.#hasExternalCommits(),
      onChange: () => this.#hints.emit([{ kind: "anything" }]),
      onWarning: (error) => this.#options.onWarning?.("commits of other processes are not noticed", error),
    });
  }

  /** `data_version` of a connection changes with the commits of other connections, not with its own. */
  #hasExternalCommits(): boolean {
    const before = this.#dataVersion;
    try {
      this.#dataVersion = this.#access.readSync((db) => db.query("PRAGMA data_version")[0]?.data_version, before);
      return this.#dataVersion !== before;
    } catch {
      // A timer has no caller that could get the error. Returning true makes the listeners read, and their reads report
      // the error.
      return true;
    }
  }

  async close(): Promise<void> {
    this.#fileWatch?.stop();
    await this.#access.close();
  }
}

const isSelect = (sql: string) => sql.startsWith("SELECT");
