/**
 * Schedules the use of the connections.
 *
 * Reads and whole transactions of the store run synchronously on one connection, so they need no lock among themselves.
 * The transaction of a transactional step lasts across awaits of user code. It runs on a second connection (a database
 * in memory has only one). SQLite has a single write lock, so all other writes of this process wait here, in order,
 * until that transaction has ended, instead of retrying against the database.
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
  /**
   * The unique name of a savepoint set at the start. If it still exists at the end, user code has not ended the
   * transaction.
   */
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

  /** Runs `work` as one transaction, and retries all of it while another process has the write lock. */
  async write<T>(work: (db: Connection) => T, shouldCommit?: (result: T) => boolean): Promise<T> {
    return this.#withWriteLock(() => this.#runWithRetry((db) => db.transaction(() => work(db), shouldCommit)));
  }

  /** Runs statements that each commit by themselves. `work` may be repeated, so repeating it must be harmless. */
  async writeWithoutTransaction<T>(work: (db: Connection) => T): Promise<T> {
    return this.#withWriteLock(() => this.#runWithRetry(work));
  }

  /** Begins a transaction that the caller commits or rolls back; afterwards the caller calls `releaseWriteLock`. */
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

  /** Reads without waiting, for callers that are synchronous; returns the fallback when the store is closed. */
  readSync<T>(work: (db: Connection) => T, fallback: T): T {
    return this.#isClosed ? fallback : work(this.#mainConnection);
  }

  /** Waits for the writes and the transaction that are in progress, then closes the connections. */
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
          // The store may have been closed during the wait before this attempt.
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
