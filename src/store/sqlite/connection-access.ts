/**
 * Who may use the connections when.
 *
 * One connection does everything, synchronously, so that reads and whole transactions need no lock among themselves. A
 * transaction over user code is the exception: it lasts over awaits. It has a second connection (in memory there is only
 * the one), and as SQLite has a single write lock, all other writes of this process wait for it here, in order, rather
 * than asking the database again and again.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Connection } from "./connection.js";
import type { SqliteDriver } from "./driver.js";
import { toStoreError } from "./errors.js";
import { EventLoopYielder, Mutex, retryWhileBusy } from "./lock.js";
import { type DatabaseLocation, openConnection } from "./open.js";

export interface ExclusiveTransaction {
  readonly db: Connection;
  /** A savepoint that no other transaction has: if it is still there at the end, so is the transaction. */
  readonly savepoint: string;
  readonly releaseWriteLock: () => void;
}

export class ConnectionAccess {
  readonly driver: SqliteDriver;
  readonly location: DatabaseLocation;
  readonly #mainConnection: Connection;
  readonly #writeMutex = new Mutex();
  readonly #runtime: Runtime;
  readonly #eventLoopYielder: EventLoopYielder;
  #transactionConnection: Connection | undefined;
  #transactionCount = 0;
  #isClosed = false;

  constructor(driver: SqliteDriver, location: DatabaseLocation, main: Connection, runtime: Runtime) {
    this.driver = driver;
    this.location = location;
    this.#mainConnection = main;
    this.#runtime = runtime;
    this.#eventLoopYielder = new EventLoopYielder(runtime);
  }

  async read<T>(work: (db: Connection) => T): Promise<T> {
    if (this.location.file === null) return this.#withWriteLock(() => this.#runWithRetry(work));
    return this.#runWithRetry(work);
  }

  /** A whole transaction; rolled back when its result is not to be kept. Retried as a whole while others write. */
  async write<T>(work: (db: Connection) => T, shouldCommit?: (result: T) => boolean): Promise<T> {
    return this.#withWriteLock(() => this.#runWithRetry((db) => db.transaction(() => work(db), shouldCommit)));
  }

  /** Statements that are each a transaction of their own, and may be repeated. */
  async writeWithoutTransaction<T>(work: (db: Connection) => T): Promise<T> {
    return this.#withWriteLock(() => this.#runWithRetry(work));
  }

  /** Opens a transaction that lasts until `end` is called; the caller commits it or rolls it back before. */
  async begin(): Promise<ExclusiveTransaction> {
    await this.#writeMutex.acquire();
    try {
      this.#assertOpen();
      if (this.location.file !== null)
        this.#transactionConnection ??= await openConnection(this.driver, this.location, this.#runtime);
      const db = this.#transactionConnection ?? this.#mainConnection;
      const savepoint = `pawl_transaction_${++this.#transactionCount}`;
      await this.#runWithRetry(() => db.database.exec(`BEGIN IMMEDIATE; SAVEPOINT ${savepoint}`));
      return { db, savepoint, releaseWriteLock: () => this.#writeMutex.release() };
    } catch (error) {
      this.#writeMutex.release();
      throw error;
    }
  }

  /** At once, for what cannot wait; only for reads. */
  readSync<T>(work: (db: Connection) => T, fallback: T): T {
    return this.#isClosed ? fallback : work(this.#mainConnection);
  }

  /** Waits for what is in flight. */
  async close(): Promise<void> {
    await this.#writeMutex.acquire();
    try {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.#transactionConnection?.close();
      this.#mainConnection.close();
    } finally {
      this.#writeMutex.release();
    }
  }

  async #withWriteLock<T>(work: () => Promise<T>): Promise<T> {
    const lockAcquired = this.#writeMutex.acquire();
    if (lockAcquired !== undefined) await lockAcquired;
    try {
      return await work();
    } finally {
      this.#writeMutex.release();
    }
  }

  async #runWithRetry<T>(work: (db: Connection) => T): Promise<T> {
    const yielded = this.#eventLoopYielder.yieldIfDue();
    if (yielded !== undefined) await yielded;
    try {
      return await retryWhileBusy(
        () => {
          // Each time: it may have been closed while this waited.
          this.#assertOpen();
          return work(this.#mainConnection);
        },
        this.location.description,
        this.#runtime,
      );
    } catch (error) {
      throw toStoreError(error, this.location.description);
    }
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new StoreError(`${this.location.description} is closed.`, { transient: false });
  }
}
