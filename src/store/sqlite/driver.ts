/**
 * The two drivers, behind the shape that both have: `node:sqlite` where Node brings it (22.13 and later), otherwise
 * `better-sqlite3`. Both are synchronous.
 */
import { StoreError } from "../../core/errors.js";
import type { SqlRow } from "../sql/dialect.js";

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

type Open = (file: string) => SqliteDatabase;

interface NodeSqlite {
  readonly DatabaseSync: new (file: string) => SqliteDatabase;
}

interface BetterSqlite3 {
  readonly default: new (file: string) => SqliteDatabase;
}

/** How to open a file with the driver that is there. */
export async function loadDriver(): Promise<Open> {
  const builtIn = loadNodeSqlite();
  if (builtIn !== undefined) return (file) => new builtIn.DatabaseSync(file);
  try {
    const { default: Database } = (await import("better-sqlite3")) as unknown as BetterSqlite3;
    return (file) => new Database(file);
  } catch (cause) {
    throw new StoreError(
      "SQLite needs Node 22.13 or later, or the package better-sqlite3: npm install better-sqlite3",
      { transient: false, cause },
    );
  }
}

/** Loading it prints a warning that it is experimental, which Pawl's users can do nothing about; others pass. */
function loadNodeSqlite(): NodeSqlite | undefined {
  const { emitWarning } = process;
  const quiet = (...[warning, ...rest]: [string | Error, ...never[]]) => {
    if (!String(warning).startsWith("SQLite is an experimental")) emitWarning.call(process, warning, ...rest);
  };
  process.emitWarning = quiet as typeof emitWarning;
  try {
    const load = process.getBuiltinModule as ((id: string) => unknown) | undefined;
    return load?.("node:sqlite") as NodeSqlite | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** True unless the driver knows that no transaction is open. */
export function mayBeInTransaction(database: SqliteDatabase): boolean {
  return (database.inTransaction ?? database.isTransaction) !== false;
}
