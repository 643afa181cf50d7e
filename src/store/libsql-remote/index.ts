/**
 * The store on a libSQL server (sqld, Turso). It uses the tables and statements of the SQLite store, and sends each
 * commit and each claim as one guarded batch. The server cannot notify clients of commits, so processes poll.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
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
import type { Dialect } from "../sql/dialect.js";
import { SqlGatherings } from "../sql/gatherings.js";
import type { SqlLimits } from "../sql/limits/limits.js";
import { SqlMaintenance } from "../sql/maintenance.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { SqlReads } from "../sql/reads.js";
import { encodeLoad } from "../sql/records.js";
import type { SchedulePort } from "../sql/schedule-port.js";
import { SqlSchedules } from "../sql/schedules.js";
import { sqliteDialect } from "../sqlite/dialect.js";
import { sqliteLimitsDialect } from "../sqlite/limits-dialect.js";
import { migrations } from "../sqlite/schema.js";
import { parseRemoteAddress, type RemoteAddress } from "./address.js";
import { claimStateStatement, emptyClaimOf, planClaim } from "./claim.js";
import { planCommit } from "./commit.js";
import { RemoteDatabase } from "./database.js";
import { loadClient, type Value } from "./driver.js";
import { failedGuardIndex, isUnauthorized } from "./errors.js";
import { createRemoteLimits } from "./limits.js";
import { planMessages } from "./messages.js";
import { migrationPort } from "./migrate.js";
import { runScheduleTransaction } from "./schedule-transaction.js";
import { ServerClock, serverNow } from "./server-clock.js";
import { StatementPlan } from "./statement-plan.js";
import { UserTransactions } from "./transaction.js";
import { planDeregisterWorker, planHeartbeat, planReap, planRegisterWorker } from "./workers.js";

export type { LibsqlTransactionHandle } from "./handle.js";

export async function openRemoteLibsql(url: string, options: StoreOptions = {}): Promise<Store> {
  const runtime = options.runtime ?? systemRuntime;
  const address = parseRemoteAddress(url, options.authToken);
  const db = new RemoteDatabase(await loadClient(address), address, options.onWarning, runtime);
  const store = new RemoteLibsqlStore(db, options.clock, runtime);
  try {
    // A wrong address or token fails here rather than at the first use.
    await store.syncServerClock();
    return store;
  } catch (error) {
    await db.close();
    throw (await findTokenError(address)) ?? error;
  }
}

/**
 * If sqld refuses the token, it closes a web socket without giving the reason, but over HTTP it answers with status
 * 401.
 */
async function findTokenError(address: RemoteAddress): Promise<StoreError | null> {
  const { url, authToken, description } = address;
  const open = await loadClient({ url: url.replace(/^ws/, "http"), usesWebSocket: false, authToken });
  const client = open();
  try {
    await client.execute({ sql: "SELECT 1", args: [] });
    return null;
  } catch (error) {
    if (!isUnauthorized(error)) return null;
    const problem = authToken === undefined ? "requires a token" : "refuses the token";
    return new StoreError(`${description} ${problem}: connect(url, { authToken }), or ?authToken=… in the URL.`, {
      transient: false,
      cause: error,
    });
  } finally {
    client.close();
  }
}

class RemoteLibsqlStore extends SqlReads implements Store {
  readonly hasCrossProcessHints = false;
  readonly description: string;
  readonly maintenance: SqlMaintenance;
  readonly limits: SqlLimits;
  readonly schedules: SqlSchedules;
  readonly gatherings: SqlGatherings;
  readonly #db: RemoteDatabase;
  readonly #runtime: Runtime;
  readonly #serverClock: ServerClock;
  readonly #clock: () => number;
  readonly #hasVirtualClock: boolean;
  readonly #hints = new HintEmitter();
  readonly #transactions: UserTransactions;
  #hasFoundTasks = true;

  constructor(db: RemoteDatabase, clock: StoreOptions["clock"], runtime: Runtime) {
    const sqlite = sqliteDialect(clock ?? (() => runtime.now()), "libSQL");
    const dialect: Dialect = clock === undefined ? { ...sqlite, now: () => serverNow } : sqlite;
    super(db, dialect);
    this.maintenance = new SqlMaintenance(
      {
        query: (sql, values) => db.query(sql, values),
        writeAtomically: async (writes) => {
          await db.write(writes.map(({ text, values }) => ({ sql: text, args: values as readonly Value[] })));
        },
        emitHints: (hints) => this.#hints.emit(hints),
      },
      dialect,
    );
    this.limits = createRemoteLimits(db, dialect, (hints) => this.#hints.emit(hints));
    const schedulePort: SchedulePort = {
      query: (sql, values) => db.query(sql, values),
      transaction: (work) => runScheduleTransaction(db, () => this.#clock(), work),
      emitHints: (hints) => this.#hints.emit(hints),
    };
    this.schedules = new SqlSchedules(schedulePort, dialect);
    this.gatherings = new SqlGatherings(schedulePort, sqliteLimitsDialect(dialect));
    this.#db = db;
    this.#runtime = runtime;
    this.#serverClock = new ServerClock(runtime);
    this.description = db.description;
    this.#hasVirtualClock = clock !== undefined;
    this.#clock = clock ?? (() => this.#serverClock.now());
    this.#transactions = new UserTransactions(db, this.#clock, (batch, result, started) => {
      this.#hints.emit(hintsOfCommit(batch, result));
      if (result.kind === "committed") this.#hints.emit(hintsOfStarts(started));
    });
  }

  migrate(): Promise<void> {
    return migrate(migrationPort(this.#db), migrations);
  }

  pendingMigrations(): Promise<readonly number[]> {
    return pendingMigrations(migrationPort(this.#db), migrations);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const { plan, resultOf } = planCommit(batch, this.#clock());
    const result = await this.#runPlan(plan, resultOf);
    this.#hints.emit(hintsOfCommit(batch, result));
    return result;
  }

  async startInTransaction(
    tx: unknown,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
    const at = this.#clock();
    const refused = await this.#transactions.startRuns(tx, starts, at);
    // The caller has not committed yet, so a worker may find nothing now; it finds the runs at its next poll.
    this.#hints.emit(hintsOfStarts(starts));
    return { at, refused };
  }

  async sendInTransaction(tx: unknown, messages: readonly Message[]): Promise<SentInTransaction> {
    const result = await this.#transactions.send(tx, messages, this.#clock());
    // As in `startInTransaction`, the caller has not committed yet.
    this.#hints.emit(hintsOfMessages(messages));
    return result;
  }

  async send(messages: readonly Message[], seen?: SeenRun): Promise<{ readonly undeliverable: readonly string[] }> {
    const plan = new StatementPlan<never>();
    const countIndexes = planMessages(plan, messages, this.#clock(), seen);
    const results = plan.statements.length === 0 ? [] : await this.#db.write(plan.statements);
    this.#hints.emit(hintsOfMessages(messages));
    return {
      undeliverable: messages.flatMap(({ to }, i) => (results[countIndexes[i] ?? -1]?.rowsAffected === 0 ? [to] : [])),
    };
  }

  beginTransaction(): Promise<StoreTransaction> {
    return this.#transactions.begin();
  }

  /** After a claim that found no task, the next claims first read, without the write lock, whether there are tasks. */
  async claim(request: ClaimRequest): Promise<ClaimResult> {
    if (!this.#hasFoundTasks) {
      const sentAt = this.#runtime.now();
      const [row] = await this.#db.read(claimStateStatement(request));
      this.#serverClock.adjust(Number(row?.now), sentAt, this.#runtime.now());
      const emptyClaim = row === undefined ? null : emptyClaimOf(row, this.#clock());
      if (emptyClaim !== null) return emptyClaim;
    }
    const { plan, readResult } = planClaim(request, this.#clock());
    const result = await this.#runPlan<ClaimResult>(plan, (results) =>
      readResult(results, (ids) => this.runsById(ids)),
    );
    this.#hasFoundTasks = result.kind === "claimed" && result.tasks.length > 0;
    return result;
  }

  async registerWorker(worker: WorkerInfo): Promise<Fence> {
    this.#db.deadline.addLease(worker.id, worker.leaseMs);
    const { plan, resultOf } = planRegisterWorker(worker, this.#clock());
    const { fence, hasFreedTasks } = resultOf(await this.#db.write(plan.statements));
    if (hasFreedTasks) this.#emitReadyHint();
    return fence;
  }

  async heartbeat(fence: Fence, load?: WorkerLoad, schedules?: ScheduleInterest): Promise<HeartbeatResult> {
    const { plan, resultOf } = planHeartbeat(
      fence,
      encodeLoad(load),
      schedules,
      this.#hasVirtualClock ? this.#clock() : null,
    );
    const sentAt = this.#runtime.now();
    const { hasExpiredWorkers, now, ...result } = resultOf(await this.#db.write(plan.statements));
    this.#serverClock.adjust(now, sentAt, this.#runtime.now());
    const reapedWorkerIds = hasExpiredWorkers ? await this.#reap(fence.workerId) : [];
    if (reapedWorkerIds.length > 0) this.#emitReadyHint();
    return { ...result, reapedWorkerIds };
  }

  async #reap(callerId: string): Promise<string[]> {
    const { plan, resultOf } = planReap(callerId, this.#clock());
    return resultOf(await this.#db.write(plan.statements));
  }

  async deregisterWorker(fence: Fence): Promise<void> {
    await this.#db.write(planDeregisterWorker(fence, this.#clock()).statements);
    this.#db.deadline.removeLease(fence.workerId);
    this.#emitReadyHint();
  }

  #emitReadyHint(): void {
    this.#hints.emit([{ kind: "ready", workflows: [] }]);
  }

  async now(): Promise<number> {
    return this.#hasVirtualClock ? this.#clock() : this.syncServerClock();
  }

  /** Reads the server's time, adjusts this process's estimate of it, and returns it. */
  async syncServerClock(): Promise<number> {
    const sentAt = this.#runtime.now();
    const [row] = await this.#db.read({ sql: `SELECT ${serverNow} AS now`, args: [] });
    const now = Number(row?.now);
    this.#serverClock.adjust(now, sentAt, this.#runtime.now());
    return now;
  }

  watch(listener: (hint: Hint) => void): () => void {
    return this.#hints.watch(listener);
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  /**
   * Sends the plan as one batch. Returns the refusal of the guard that failed, or what `resultOf` reads from the
   * results.
   */
  async #runPlan<R>(
    plan: StatementPlan<R>,
    resultOf: (results: Awaited<ReturnType<RemoteDatabase["write"]>>) => R | Promise<R>,
  ): Promise<R> {
    let results: Awaited<ReturnType<RemoteDatabase["write"]>>;
    try {
      results = await this.#db.write(plan.statements);
    } catch (error) {
      const failedIndex = failedGuardIndex((error as Error).cause ?? error);
      const refusal = failedIndex === null ? null : plan.refusalAt(failedIndex);
      if (refusal === null) throw error;
      return refusal;
    }
    return resultOf(results);
  }
}
