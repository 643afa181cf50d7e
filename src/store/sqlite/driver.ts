/**
 * What the store needs of a SQLite library, and the two that have it as they are: `node:sqlite` where Node brings it
 * (22.13 and later), otherwise `better-sqlite3`. A third is made to fit in store/libsql. All are synchronous.
 */
import { StoreError } from "../../core/errors/errors.js";
import { createDriverError } from "../shared/missing-driver.js";
import type { SqlRow } from "../sql/dialect.js";

export type DriverName = "node:sqlite" | "better-sqlite3";

export interface SqliteStatement {
  run(...values: unknown[]): { readonly changes: number | bigint };
  get(...values: unknown[]): SqlRow | undefined;
  all(...values: unknown[]): SqlRow[];
  /** better-sqlite3: whether it returns rows (`all` throws when it does not). node:sqlite has no such property. */
  readonly reader?: boolean;
}

export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  close(): unknown;
  /** Whether a transaction is open, as better-sqlite3 and (newer) node:sqlite call it. */
  readonly inTransaction?: boolean;
  readonly isTransaction?: boolean;
}

export interface SqliteDriver {
  /** For people. */
  readonly name: string;
  /** The library's own class, of which databases that users open are instances. */
  readonly Database: new (
    file: string,
  ) => SqliteDatabase;
  /** Opens a file, or ":memory:". */
  readonly open: (file: string) => SqliteDatabase;
  /** A database that a user has opened, made to fit. */
  readonly adopt: (database: SqliteDatabase) => SqliteDatabase;
}

/** The driver that is asked for, or the first that is there. */
export async function loadDriver(name?: DriverName): Promise<SqliteDriver> {
  if (name !== "better-sqlite3") {
    const Database = loadNodeSqlite();
    if (Database !== undefined) return createDriver("node:sqlite", Database);
    if (name !== undefined) throw new StoreError("This Node has no node:sqlite; 22.13 has.", { transient: false });
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
  return { name, Database, open: (file) => openDatabase(Database, file), adopt: (database) => database };
}

/** better-sqlite3 looks for its binary only now, and in a bundle it looks in the wrong place. */
function openDatabase(Database: SqliteDriver["Database"], file: string): SqliteDatabase {
  try {
    return new Database(file);
  } catch (cause) {
    if (!String((cause as Error | null)?.message).startsWith("Could not locate the bindings file")) throw cause;
    throw createDriverError("better-sqlite3", "", cause);
  }
}

/** Loading it prints a warning that it is experimental, which Pawl's users can do nothing about; others pass. */
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

/** Asked after an error: older versions of node:sqlite do not tell, but a transaction cannot be begun within one. */
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

/** False when the driver knows that no transaction is open. */
export function mayBeInTransaction(database: SqliteDatabase): boolean {
  return (database.inTransaction ?? database.isTransaction) !== false;
}
