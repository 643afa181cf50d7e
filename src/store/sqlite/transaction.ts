/** A transaction over user code, and runs that are started on a transaction of the user's own. */

import { realpathSync } from "node:fs";
import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  CommitResult,
  Mail,
  NewRun,
  Refusal,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { sqliteSyntax } from "../sql/lex.js";
import type { Access, BegunTransaction } from "./access.js";
import { applyBatch, isCommitted } from "./commit.js";
import { Connection } from "./connection.js";
import { mayBeInTransaction, type SqliteDatabase } from "./driver.js";
import { toStoreError } from "./errors.js";
import { guardedHandle, type SqliteHandle } from "./handle.js";
import { deliverBy } from "./mail.js";
import { startRuns, startRunsBy } from "./starts.js";
import { renew } from "./workers.js";

/** Runs that were started with a handle are told of when its transaction commits. */
export interface OpenTransaction {
  readonly db: Connection;
  readonly started: NewRun[];
  readonly guard: TransactionGuard;
}

export class SqliteTransaction implements StoreTransaction {
  readonly handle: SqliteHandle;
  readonly open: OpenTransaction;
  readonly #access: Access;
  readonly #end: () => void;
  readonly #clock: () => number;
  readonly #runtime: Runtime;
  readonly #onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void;
  readonly #mark: string;
  #ended = false;

  constructor(
    access: Access,
    { db, mark, end }: BegunTransaction,
    clock: () => number,
    runtime: Runtime,
    onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void,
  ) {
    this.#access = access;
    this.#mark = mark;
    this.#end = end;
    this.#clock = clock;
    this.#runtime = runtime;
    this.#onCommit = onCommit;
    this.open = { db, started: [], guard: new TransactionGuard(sqliteSyntax) };
    this.handle = guardedHandle(db, this.open.guard);
  }

  async commit(batch: Batch): Promise<CommitResult> {
    const { db, started, guard } = this.open;
    try {
      guard.assertUsable();
      guard.end();
      this.#assertSame();
      const result = applyBatch(db, batch, this.#clock());
      // While this transaction had the write lock, the worker's heartbeat could not renew its lease.
      if (isCommitted(result) && batch.fence !== null) renew(db, batch.fence, this.#runtime.now());
      db.run(isCommitted(result) ? "COMMIT" : "ROLLBACK");
      this.#finish();
      this.#onCommit(batch, result, started);
      return result;
    } catch (error) {
      await this.rollback();
      throw toStoreError(error, this.#access.location.description);
    }
  }

  /** What the step wrote is gone if its transaction is: then the step must not be recorded either. */
  #assertSame(): void {
    const { db, guard } = this.open;
    try {
      db.database.exec(`RELEASE ${this.#mark}`);
    } catch (error) {
      throw guard.broke("The transaction of this step was ended before its time.", error);
    }
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    this.open.guard.end();
    this.open.db.rollBack();
    this.#finish();
  }

  #finish(): void {
    this.#ended = true;
    this.#end();
  }
}

interface AsynchronousDatabase {
  query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]>;
}

const databaseList = "PRAGMA database_list";

/** Starts runs on a transaction that belongs to the caller: a database of the driver, or anything with a `query`. */
export function startWithin(access: Access, tx: unknown, runs: readonly NewRun[], at: number): Promise<Refusal[]> {
  return within(access, tx, {
    now: (db) => startRuns(db, runs, null, at),
    later: (db) => startRunsBy(db, runs, at),
  });
}

/** Sends messages on it. */
export function sendWithin(access: Access, tx: unknown, mail: readonly Mail[], at: number): Promise<SentInTransaction> {
  return within(access, tx, {
    now: (db) => deliverBy(asQueryable(db), mail, at),
    later: (db) => deliverBy(db, mail, at),
  });
}

export const asQueryable = (db: Connection): Queryable => ({ query: async (text, values) => db.query(text, values) });

async function within<T>(
  access: Access,
  tx: unknown,
  work: { now(db: Connection): T | Promise<T>; later(db: AsynchronousDatabase): Promise<T> },
): Promise<T> {
  const { description } = access.location;
  try {
    if (isDatabase(tx)) {
      const db = adopt(access, tx);
      assertSameFile(access, db.query(databaseList));
      return await work.now(db);
    }
    if (isAsynchronous(tx)) {
      assertSameFile(access, await tx.query(databaseList, []));
      return await work.later(tx);
    }
  } catch (error) {
    throw toStoreError(error, description);
  }
  return misuse(`${description}: a transaction is a database with an open transaction, or { query(sql, values) }.`);
}

const isDatabase = (tx: unknown): tx is SqliteDatabase => has(tx, "prepare") && has(tx, "exec");
const isAsynchronous = (tx: unknown): tx is AsynchronousDatabase => has(tx, "query");
const has = (value: unknown, name: string) =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, name) === "function";

function adopt({ driver, location }: Access, tx: SqliteDatabase): Connection {
  // Two SQLite libraries in one process undo each other's file locks when they close, and then damage the file
  // (https://www.sqlite.org/howtocorrupt.html, 2.2.1).
  if (!(tx instanceof driver.Database)) {
    misuse(
      `${location.description} was opened with ${driver.name}, the transaction with another SQLite library. ` +
        "Two in one process damage the file: use the same (openSqlite has the option `driver`).",
    );
  }
  const database = driver.adopt(tx);
  if (!mayBeInTransaction(database)) {
    misuse("There is no open transaction on this database: run BEGIN IMMEDIATE first.");
  }
  return new Connection(database);
}

function assertSameFile(access: Access, databases: readonly SqlRow[]): void {
  const main = databases.find((row) => row.name === "main")?.file;
  const { file, description } = access.location;
  const same = file !== null && typeof main === "string" && main !== "" && realpathSync(main) === realpathSync(file);
  if (!same) misuse(`The transaction is on ${main || "a database in memory"}, but this store is ${description}.`);
}

function misuse(message: string): never {
  throw new StoreError(message, { transient: false });
}
