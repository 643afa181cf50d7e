/**
 * Adapts a database of the library `libsql` to the interface of the store. The library follows better-sqlite3 but
 * differs in these points (0.5.29):
 *
 * - A prepared statement that finds the database locked stays active until it is run again, and meanwhile no COMMIT on
 *   its connection succeeds. `exec` does not have this fault. So this class takes all locks with `exec`: `exec` begins
 *   and ends transactions, and a write outside of a transaction gets a transaction of its own.
 *   (github.com/tursodatabase/libsql-client-ts/issues/352)
 * - `run` stops at the first row of a statement that returns rows, and the statement then stays active as well. `get`
 *   adds a column to the row. This class calls `all` instead of `run` and `get` for such statements.
 * - A boolean among the values, and reading `inTransaction` of a closed database, crash the whole process. The library
 *   treats a single null as an object of named values, and undefined as null. So this class checks the values and
 *   passes them as one array.
 * - `close` closes the file only when the database's statements have been garbage-collected. So this class first writes
 *   the WAL into the database file; then a copy of the file is complete.
 *   (github.com/tursodatabase/libsql-js/issues/228)
 */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { SqlRow } from "../sql/dialect.js";
import type { SqliteDatabase, SqliteStatement } from "../sqlite/driver.js";

/** The library's own `Database`. Its statements also accept their values as one array. */
export interface NativeDatabase extends SqliteDatabase {
  readonly open: boolean;
  readonly inTransaction: boolean;
}

type Changes = ReturnType<SqliteStatement["run"]>;

const transactionControlPattern = /^\s*(BEGIN|COMMIT|END|ROLLBACK)\b/i;

export class LibsqlDatabase implements SqliteDatabase {
  readonly #native: NativeDatabase;

  constructor(native: NativeDatabase) {
    this.#native = native;
  }

  get inTransaction(): boolean {
    return this.#native.open && this.#native.inTransaction;
  }

  prepare(sql: string): SqliteStatement {
    if (transactionControlPattern.test(sql)) return new ExecutedStatement(this, sql);
    return new PreparedStatement(this, this.#native.prepare(sql));
  }

  exec(sql: string): void {
    this.#native.exec(sql);
  }

  close(): void {
    try {
      this.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Another connection is using the file and will write the checkpoint when it closes.
    }
    this.#native.close();
  }
}

class ExecutedStatement implements SqliteStatement {
  readonly reader = false;
  readonly #database: LibsqlDatabase;
  readonly #sql: string;

  constructor(database: LibsqlDatabase, sql: string) {
    this.#database = database;
    this.#sql = sql;
  }

  run(): Changes {
    this.#database.exec(this.#sql);
    return { changes: 0 };
  }

  get(): undefined {
    this.run();
  }

  all(): SqlRow[] {
    this.run();
    return [];
  }
}

class PreparedStatement implements SqliteStatement {
  readonly reader: boolean;
  readonly #database: LibsqlDatabase;
  readonly #native: SqliteStatement;

  constructor(database: LibsqlDatabase, native: SqliteStatement) {
    this.#database = database;
    this.#native = native;
    this.reader = native.reader !== false;
  }

  run(...values: unknown[]): Changes {
    assertBindable(values);
    // A statement with RETURNING returns one row for each changed row, so the number of rows is the number of changes.
    if (this.reader) return { changes: this.#native.all(values).length };
    return this.#database.inTransaction ? this.#native.run(values) : this.#runInOwnTransaction(values);
  }

  get(...values: unknown[]): SqlRow | undefined {
    return this.all(...values)[0];
  }

  all(...values: unknown[]): SqlRow[] {
    assertBindable(values);
    return this.#native.all(values);
  }

  #runInOwnTransaction(values: readonly unknown[]): Changes {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const result = this.#native.run(values);
      this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}

function assertBindable(values: readonly unknown[]): void {
  for (const value of values) {
    const type = typeof value;
    if (type === "string" || type === "number" || type === "bigint" || value === null) continue;
    if (!(value instanceof Uint8Array)) {
      throw new InvalidInputError(
        `SQLite accepts numbers, strings, bigints, buffers and null as values, but not: ${type}.`,
      );
    }
  }
}
