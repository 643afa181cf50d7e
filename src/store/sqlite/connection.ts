/** A connection and the cache of its prepared statements. Everything here is synchronous. */
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

  /** Runs a statement that returns no rows, and returns the number of rows that it changed. */
  run(sql: string, ...values: unknown[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  get(sql: string, ...values: unknown[]): SqlRow | undefined {
    return this.#prepare(sql).get(...values);
  }

  all(sql: string, ...values: unknown[]): SqlRow[] {
    return this.#prepare(sql).all(...values);
  }

  /** Runs any statement and returns its rows, or an empty list if it is not a query. */
  query(sql: string, values: readonly unknown[] = []): SqlRow[] {
    const statement = this.#prepare(sql);
    if (statement.reader !== false) return statement.all(...values);
    statement.run(...values);
    return [];
  }

  /**
   * Runs `work` as one transaction, which is rolled back when `work` throws or `shouldCommit` returns false. BEGIN
   * IMMEDIATE takes the write lock first: a deferred transaction that has already read cannot wait for the lock (it
   * fails with SQLITE_BUSY_SNAPSHOT) and would have to start over.
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

  /** After some errors SQLite has already rolled back, and ROLLBACK fails; that failure is ignored. */
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
