/** The store on MySQL 8.0+ and MariaDB 10.6+. The server cannot notify clients of commits, so processes poll. */

import { systemRuntime } from "../../runtime/system.js";
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
} from "../contract/store.js";
import { HintEmitter, hintsOfCommit, hintsOfMessages, hintsOfStarts } from "../shared/hint-emitter.js";
import { SqlGatherings } from "../sql/gatherings.js";
import type { SqlLimits } from "../sql/limits/limits.js";
import { SqlMaintenance } from "../sql/maintenance.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { SqlSchedules } from "../sql/schedules.js";
import { appendEvents, isAppend } from "./append.js";
import { claim } from "./claim.js";
import { type Clock, nowExpression } from "./clock.js";
import { commitBatch, readConflict } from "./commit.js";
import { Database } from "./database.js";
import { mysqlDialect } from "./dialect.js";
import { loadDriver, parseUrl } from "./driver.js";
import { createMysqlLimits, mysqlLimitsDialect } from "./limits.js";
import { sendMessages } from "./messages.js";
import { migrationPort } from "./migrate.js";
import { createSchedulePort } from "./schedule-port.js";
import { migrations } from "./schema.js";
import { sql, type Value } from "./sql.js";
import { beginTransaction, sendInTransaction, startInTransaction } from "./transactions.js";
import { deregisterWorker, heartbeat, registerWorker } from "./workers.js";

/**
 * Opens a store on a MySQL or MariaDB database.
 *
 * @example const store = await openMysql("mysql://app:secret@localhost:3306/app");
 */
export async function openMysql(url: string, options: StoreOptions = {}): Promise<Store> {
  const runtime = options.runtime ?? systemRuntime;
  const { uri, description } = parseUrl(url);
  const db = new Database(await loadDriver(), uri, runtime, options.onWarning, options.pool);
  const store = new MysqlStore(db, description, options.clock);
  try {
    // A wrong address or password fails here rather than at the first use.
    await store.now();
    return store;
  } catch (error) {
    await db.close();
    throw error;
  }
}

class MysqlStore extends SqlReads implements Store {
  readonly hasCrossProcessHints = false;
  readonly description: string;
  readonly maintenance: SqlMaintenance;
  readonly limits: SqlLimits;
  readonly schedules: SqlSchedules;
  readonly gatherings: SqlGatherings;
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #hints = new HintEmitter();

  constructor(db: Database, description: string, clock: Clock) {
    const dialect = mysqlDialect(clock);
    super(db, dialect);
    this.maintenance = new SqlMaintenance(
      {
        query: (text, values) => db.query(text, values),
        writeAtomically: (writes) =>
          db.transaction(async (transaction) => {
            await transaction.commit(writes.map(({ text, values }) => sql(text, values as readonly Value[])));
          }),
        emitHints: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.limits = createMysqlLimits(db, dialect, (hints) => this.#hints.emit(hints));
    const emitHints = (hints: readonly Hint[]) => this.#hints.emit(hints);
    const schedulePort = createSchedulePort(db, () => this.#now(), emitHints);
    this.schedules = new SqlSchedules(schedulePort, dialect);
    this.gatherings = new SqlGatherings(schedulePort, mysqlLimitsDialect(dialect));
    this.#db = db;
    this.description = description;
    this.#clock = clock;
  }

  migrate(): Promise<void> {
    return migrate(migrationPort(this.#db), migrations);
  }

  pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(migrationPort(this.#db), migrations);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const appended = isAppend(batch) ? await appendEvents(this.#db, batch, this.#now()) : null;
    if (appended !== null) return appended;
    const result = await this.#db
      .transaction((transaction) => commitBatch(transaction, batch, this.#now()))
      .catch((error: unknown) => readConflict(this.#db.reader, batch, this.#now(), error));
    this.#hints.emit(hintsOfCommit(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
    const result = await startInTransaction(tx, starts, this.#now());
    // The caller has not committed yet, so a worker may find nothing now; it finds the runs at its next poll.
    this.#hints.emit(hintsOfStarts(starts));
    return result;
  }

  async sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction> {
    const result = await sendInTransaction(tx, messages, this.#now());
    this.#hints.emit(hintsOfMessages(messages));
    return result;
  }

  async send(messages: readonly Message[], seen?: SeenRun): Promise<{ readonly undeliverable: readonly string[] }> {
    const undeliverable = await sendMessages(this.#db, messages, this.#now(), seen);
    this.#hints.emit(hintsOfMessages(messages));
    return { undeliverable };
  }

  beginTransaction(): Promise<StoreTransaction> {
    const onCommitted = (batch: Batch, result: CommitResult) => this.#hints.emit(hintsOfCommit(batch, result));
    return beginTransaction(this.#db, () => this.#now(), onCommitted);
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    return claim(this.#db, request, this.#clock);
  }

  async registerWorker(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.addLease(worker.id, worker.leaseMs);
    const { fence, hasFreedTasks } = await registerWorker(this.#db, worker, this.#now());
    if (hasFreedTasks) this.#hints.emit(tasksFreedHints);
    return fence;
  }

  async heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult> {
    const { hasFreedTasks, ...result } = await heartbeat(this.#db, fence, { load, schedules }, () => this.#now());
    if (hasFreedTasks || result.reapedWorkerIds.length > 0) this.#hints.emit(tasksFreedHints);
    return result;
  }

  async deregisterWorker(fence: Fence): Promise<void> {
    await deregisterWorker(this.#db, fence, this.#now());
    this.#db.deadline.removeLease(fence.workerId);
    this.#hints.emit(tasksFreedHints);
  }

  async now(): Promise<number> {
    const [result] = await this.#db.read([sql(`SELECT ${this.#now()} AS now`)]);
    return Number(result?.rows[0]?.now);
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  #now(): string {
    return nowExpression(this.#clock);
  }
}

const tasksFreedHints: readonly Hint[] = [{ kind: "ready", workflows: [] }];
