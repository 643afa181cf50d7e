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
import { Breather, Mutex, whileBusy } from "./lock.js";
import { type Location, openConnection } from "./open.js";

export interface BegunTransaction {
  readonly db: Connection;
  /** A savepoint that no other transaction has: if it is still there at the end, so is the transaction. */
  readonly mark: string;
  readonly end: () => void;
}

export class Access {
  readonly driver: SqliteDriver;
  readonly location: Location;
  readonly #main: Connection;
  readonly #writing = new Mutex();
  readonly #runtime: Runtime;
  readonly #breather: Breather;
  #second: Connection | undefined;
  #begun = 0;
  #closed = false;

  constructor(driver: SqliteDriver, location: Location, main: Connection, runtime: Runtime) {
    this.driver = driver;
    this.location = location;
    this.#main = main;
    this.#runtime = runtime;
    this.#breather = new Breather(runtime);
  }

  async read<T>(work: (db: Connection) => T): Promise<T> {
    if (this.location.file === null) return this.#alone(() => this.#attempt(work));
    return this.#attempt(work);
  }

  /** A whole transaction; rolled back when its result is not to be kept. Retried as a whole while others write. */
  async write<T>(work: (db: Connection) => T, isKept?: (result: T) => boolean): Promise<T> {
    return this.#alone(() => this.#attempt((db) => db.transaction(() => work(db), isKept)));
  }

  /** Statements that are each a transaction of their own, and may be repeated. */
  async writeEach<T>(work: (db: Connection) => T): Promise<T> {
    return this.#alone(() => this.#attempt(work));
  }

  /** Opens a transaction that lasts until `end` is called; the caller commits it or rolls it back before. */
  async begin(): Promise<BegunTransaction> {
    await this.#writing.acquire();
    try {
      this.#assertOpen();
      if (this.location.file !== null) this.#second ??= await openConnection(this.driver, this.location, this.#runtime);
      const db = this.#second ?? this.#main;
      const mark = `pawl_transaction_${++this.#begun}`;
      await this.#attempt(() => db.database.exec(`BEGIN IMMEDIATE; SAVEPOINT ${mark}`));
      return { db, mark, end: () => this.#writing.release() };
    } catch (error) {
      this.#writing.release();
      throw error;
    }
  }

  /** At once, for what cannot wait; only for reads. */
  readNow<T>(work: (db: Connection) => T, otherwise: T): T {
    return this.#closed ? otherwise : work(this.#main);
  }

  /** Waits for what is in flight. */
  async close(): Promise<void> {
    await this.#writing.acquire();
    try {
      if (this.#closed) return;
      this.#closed = true;
      this.#second?.close();
      this.#main.close();
    } finally {
      this.#writing.release();
    }
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#writing.acquire();
    if (turn !== undefined) await turn;
    try {
      return await work();
    } finally {
      this.#writing.release();
    }
  }

  async #attempt<T>(work: (db: Connection) => T): Promise<T> {
    const breath = this.#breather.pause();
    if (breath !== undefined) await breath;
    try {
      return await whileBusy(
        () => {
          // Each time: it may have been closed while this waited.
          this.#assertOpen();
          return work(this.#main);
        },
        this.location.description,
        this.#runtime,
      );
    } catch (error) {
      throw toStoreError(error, this.location.description);
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError(`${this.location.description} is closed.`, { transient: false });
  }
}
