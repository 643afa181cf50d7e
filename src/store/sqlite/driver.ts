/**
 * The interface that the store needs of a SQLite library. `node:sqlite` (Node 22.13 and later) and `better-sqlite3`
 * implement it as they are; store/libsql adapts a third library. All of them are synchronous.
 */
import { StoreError } from "../../core/errors/errors.js";
import { createDriverError } from "../shared/missing-driver.js";
import type { SqlRow } from "../sql/dialect.js";

export type DriverName = "node:sqlite" | "better-sqlite3";

export interface SqliteStatement {
  run(...values: unknown[]): { readonly changes: number | bigint };
  get(...values: unknown[]): SqlRow | undefined;
  all(...values: unknown[]): SqlRow[];
  /** Whether the statement returns rows; if not, `all` of better-sqlite3 throws. node:sqlite lacks the property. */
  readonly reader?: boolean;
}

export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  close(): unknown;
  /** Whether a transaction is open: `inTransaction` in better-sqlite3, `isTransaction` in newer node:sqlite. */
  readonly inTransaction?: boolean;
  readonly isTransaction?: boolean;
}

export interface SqliteDriver {
  /** The library's name, for error messages. */
  readonly name: string;
  /** The name of the product, for display. */
  readonly engine: string;
  /** The library's own class. A database that the user has opened must be an instance of it. */
  readonly Database: new (
    file: string,
  ) => SqliteDatabase;
  /** Opens a file, or ":memory:". */
  readonly open: (file: string) => SqliteDatabase;
  /** Wraps a database that the user has opened in the interface of the store. */
  readonly adopt: (database: SqliteDatabase) => SqliteDatabase;
}

/** Loads the named driver; without a name, node:sqlite if this Node has it, otherwise better-sqlite3. */
export async function loadDriver(name?: DriverName): Promise<SqliteDriver> {
  if (name !== "better-sqlite3") {
    const Database = loadNodeSqlite();
    if (Database !== undefined) return createDriver("node:sqlite", Database);
    if (name !== undefined) {
      const message = "This version of Node has no node:sqlite; use Node 22.13 or later, or better-sqlite3.";
      throw new StoreError(message, { transient: false });
    }
  }
  try {
    const module: { default: unknown } = await import("better-sqlite3");
    return createDriver("better-sqlite3", module.default as SqliteDriver["Database"]);
  } catch (cause) {
    const missing = "SQLite needs Node 22.13 or later, or the package better-sqlite3: npm install better-sqlite3";
    throw createDriverError("better-sqlite3", missing, cause);
  }
}

function createDriver(name: DriverName, Database: SqliteDriver["Database"]): SqliteDriver {
  const open = (file: string) => openDatabase(Database, file);
  return { name, engine: "SQLite", Database, open, adopt: (database) => database };
}

/**
 * better-sqlite3 loads its native binary when it opens its first database. In a bundled program it searches the wrong
 * directory; then the error says to leave the driver out of the bundle.
 */
function openDatabase(Database: SqliteDriver["Database"], file: string): SqliteDatabase {
  try {
    return new Database(file);
  } catch (cause) {
    if (!String((cause as Error | null)?.message).startsWith("Could not locate the bindings file")) throw cause;
    throw createDriverError("better-sqlite3", "", cause);
  }
}

/** Loading node:sqlite prints a warning that it is experimental, which is suppressed: users cannot act on it. */
function loadNodeSqlite(): SqliteDriver["Database"] | undefined {
  const getBuiltin = process.getBuiltinModule as ((id: string) => unknown) | undefined;
  const emitWarning = process.emitWarning as (...args: unknown[]) => void;
  const emitUnlessExperimental = (...args: unknown[]) => {
    if (!String(args[0]).startsWith("SQLite is an experimental")) emitWarning.apply(process, args);
  };
  process.emitWarning = emitUnlessExperimental as typeof process.emitWarning;
  try {
    const module = getBuiltin?.("node:sqlite") as { DatabaseSync: SqliteDriver["Database"] } | undefined;
    return module?.DatabaseSync;
  } finally {
    process.emitWarning = emitWarning as typeof process.emitWarning;
  }
}

/**
 * Older versions of node:sqlite do not report whether a transaction is open, so this function tries BEGIN, which fails
 * exactly when one is open.
 */
export function isInTransaction(database: SqliteDatabase): boolean {
  const reported = database.inTransaction ?? database.isTransaction;
  if (reported !== undefined) return reported;
  try {
    database.exec("BEGIN");
  } catch {
    return true;
  }
  database.exec("ROLLBACK");
  return false;
}

/**
 * Returns false only when the driver reports that no transaction is open. Unlike `isInTransaction`, it executes no
 * statement.
 */
export function mayBeInTransaction(database: SqliteDatabase): boolean {
  return (database.inTransaction ?? database.isTransaction) !== false;
}
