/** One connection, with its prepared statements. Everything here is synchronous. */
import type { SqlRow } from "../sql/dialect.js";
import type { SqliteDatabase, SqliteStatement } from "./driver.js";

/** The store has about fifty fixed statements; the rest are the many forms of `runs(filter)`. */
const maxCachedStatements = 200;

export class Connection {
  readonly database: SqliteDatabase;
  readonly #statementCache = new Map<string, SqliteStatement>();

  constructor(database: SqliteDatabase) {
    this.database = database;
  }

  /** Runs a statement that returns no rows, and gives back how many it changed. */
  run(sql: string, ...values: unknown[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  get(sql: string, ...values: unknown[]): SqlRow | undefined {
    return this.#prepare(sql).get(...values);
  }

  all(sql: string, ...values: unknown[]): SqlRow[] {
    return this.#prepare(sql).all(...values);
  }

  /** Any statement: its rows, none if it returns none. */
  query(sql: string, values: readonly unknown[] = []): SqlRow[] {
    const statement = this.#prepare(sql);
    if (statement.reader !== false) return statement.all(...values);
    statement.run(...values);
    return [];
  }

  /**
   * A whole transaction, rolled back when `work` throws or its result is not to be kept. Immediate: a deferred one
   * that has read cannot wait for the write lock (SQLITE_BUSY_SNAPSHOT), it would have to begin again.
   */
  transaction<T>(work: () => T, shouldCommit: (result: T) => boolean = () => true): T {
    this.run("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.run(shouldCommit(result) ? "COMMIT" : "ROLLBACK");
      return result;
    } catch (error) {
      this.rollBack();
      throw error;
    }
  }

  /** After an error SQLite may have rolled back by itself; then there is nothing to do. */
  rollBack(): void {
    try {
      this.run("ROLLBACK");
    } catch {}
  }

  close(): void {
    this.#statementCache.clear();
    this.database.close();
  }

  #prepare(sql: string): SqliteStatement {
    const cached = this.#statementCache.get(sql);
    if (cached !== undefined) return cached;
    if (this.#statementCache.size >= maxCachedStatements) this.#statementCache.clear();
    const statement = this.database.prepare(sql);
    this.#statementCache.set(sql, statement);
    return statement;
  }
}
