/** The transaction of a transactional step, and starts and messages inside a transaction that the caller has opened. */

import { realpathSync } from "node:fs";
import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  CommitResult,
  Message,
  NewRun,
  RefusedStart,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { sqliteSyntax } from "../sql/lexer.js";
import { applyBatch, isCommitted } from "./commit.js";
import { Connection } from "./connection.js";
import type { ConnectionAccess, ExclusiveTransaction } from "./connection-access.js";
import { mayBeInTransaction, type SqliteDatabase } from "./driver.js";
import { toStoreError } from "./errors.js";
import { createGuardedHandle, type SqliteHandle } from "./handle.js";
import { deliverMessagesAsync } from "./messages.js";
import { startRuns, startRunsAsync } from "./starts.js";
import { renewLease } from "./workers.js";

/**
 * The open transaction that a handle belongs to, for the runs that user code starts and the messages that it sends with
 * that handle.
 */
export interface OpenTransaction {
  readonly db: Connection;
  /** Hints about these runs are emitted when the transaction has committed. */
  readonly startedRuns: NewRun[];
  readonly guard: TransactionGuard;
}

export class SqliteTransaction implements StoreTransaction {
  readonly handle: SqliteHandle;
  readonly openTransaction: OpenTransaction;
  readonly #access: ConnectionAccess;
  readonly #releaseWriteLock: () => void;
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void;
  readonly #savepoint: string;
  #hasEnded = false;

  constructor(
    access: ConnectionAccess,
    { db, savepoint, releaseWriteLock }: ExclusiveTransaction,
    clock: () => number,
    runtime: Runtime,
    onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void,
  ) {
    this.#access = access;
    this.#savepoint = savepoint;
    this.#releaseWriteLock = releaseWriteLock;
    this.#clock = clock;
    this.#runtime = runtime;
    this.#onCommit = onCommit;
    this.openTransaction = { db, startedRuns: [], guard: new TransactionGuard(sqliteSyntax) };
    this.handle = createGuardedHandle(db, this.openTransaction.guard);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const { db, startedRuns, guard } = this.openTransaction;
    try {
      guard.assertUsable();
      guard.end();
      this.#assertSavepointExists();
      const result = applyBatch(db, batch, this.#clock());
      // The worker's heartbeat could not renew the lease while this transaction had the write lock.
      if (isCommitted(result) && batch.fence !== null) renewLease(db, batch.fence, this.#runtime.now());
      db.run(isCommitted(result) ? "COMMIT" : "ROLLBACK");
      this.#finish();
      this.#onCommit(batch, result, startedRuns);
      return result;
    } catch (error) {
      await this.rollback();
      throw toStoreError(error, this.#access.location.description);
    }
  }

  /**
   * If user code has ended the transaction, the step's writes are not part of the transaction that is open now, so the
   * store must not record the step.
   */
  #assertSavepointExists(): void {
    const { db, guard } = this.openTransaction;
    try {
      db.database.exec(`RELEASE ${this.#savepoint}`);
    } catch (error) {
      throw guard.markBroken("The transaction of this step ended before the step did.", error);
    }
  }

  async rollback(): Promise<void> {
    if (this.#hasEnded) return;
    this.openTransaction.guard.end();
    this.openTransaction.db.rollBack();
    this.#finish();
  }

  #finish(): void {
    this.#hasEnded = true;
    this.#releaseWriteLock();
  }
}

interface AsynchronousDatabase {
  query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]>;
}

const selectDatabaseList = "PRAGMA database_list";

/** Starts runs inside the caller's transaction, which is a database of the driver or any object with a `query`. */
export function startInCallerTransaction(
  access: ConnectionAccess,
  tx: unknown,
  runs: readonly NewRun[],
  at: number,
): Promise<RefusedStart[]> {
  return runInCallerTransaction(access, tx, {
    runSync: (db) => startRuns(db, runs, null, at),
    runAsync: (db) => startRunsAsync(db, runs, at),
  });
}

/** Sends messages inside the caller's transaction, which `tx` names as in `startInCallerTransaction`. */
export function sendInCallerTransaction(
  access: ConnectionAccess,
  tx: unknown,
  messages: readonly Message[],
  at: number,
): Promise<SentInTransaction> {
  return runInCallerTransaction(access, tx, {
    runSync: (db) => deliverMessagesAsync(asQueryable(db), messages, at),
    runAsync: (db) => deliverMessagesAsync(db, messages, at),
  });
}

export const asQueryable = (db: Connection): Queryable => ({ query: async (text, values) => db.query(text, values) });

async function runInCallerTransaction<T>(
  access: ConnectionAccess,
  tx: unknown,
  work: { runSync(db: Connection): T | Promise<T>; runAsync(db: AsynchronousDatabase): Promise<T> },
): Promise<T> {
  const { description } = access.location;
  try {
    if (isDatabase(tx)) {
      const db = adopt(access, tx);
      assertSameFile(access, db.query(selectDatabaseList));
      return await work.runSync(db);
    }
    if (isAsynchronousDatabase(tx)) {
      assertSameFile(access, await tx.query(selectDatabaseList, []));
      return await work.runAsync(tx);
    }
  } catch (error) {
    throw toStoreError(error, description);
  }
  return throwMisuse(
    `${description}: pass a database with an open transaction, or an object { query(sql, values) }, as the transaction.`,
  );
}

const isDatabase = (tx: unknown): tx is SqliteDatabase => hasMethod(tx, "prepare") && hasMethod(tx, "exec");
const isAsynchronousDatabase = (tx: unknown): tx is AsynchronousDatabase => hasMethod(tx, "query");
const hasMethod = (value: unknown, name: string) =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, name) === "function";

function adopt({ driver, location }: ConnectionAccess, tx: SqliteDatabase): Connection {
  // When two SQLite libraries in one process use a file, closing one drops the file locks of the other, which can
  // damage the file (https://www.sqlite.org/howtocorrupt.html, 2.2.1).
  if (!(tx instanceof driver.Database)) {
    throwMisuse(
      `${location.description} was opened with ${driver.name}, the transaction with another SQLite library. ` +
        "Two libraries in one process damage the file: use the same one (`driver` is an option of openSqlite).",
    );
  }
  const database = driver.adopt(tx);
  if (!mayBeInTransaction(database)) {
    throwMisuse("There is no open transaction on this database: run BEGIN IMMEDIATE first.");
  }
  return new Connection(database);
}

function assertSameFile(access: ConnectionAccess, databases: readonly SqlRow[]): void {
  const mainFile = databases.find((row) => row.name === "main")?.file;
  const { file, description } = access.location;
  const isSameFile =
    file !== null && typeof mainFile === "string" && mainFile !== "" && realpathSync(mainFile) === realpathSync(file);
  if (!isSameFile)
    throwMisuse(`The transaction is on ${mainFile || "a database in memory"}, but this store is ${description}.`);
}

function throwMisuse(message: string): never {
  throw new StoreError(message, { transient: false });
}
