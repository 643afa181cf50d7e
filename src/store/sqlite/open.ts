/** Parses a URL or a path, and opens a configured connection to the file that it names. */

import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { Connection } from "./connection.js";
import type { SqliteDriver } from "./driver.js";
import { toStoreError } from "./errors.js";
import { busyTimeoutMs, retryWhileBusy } from "./lock.js";

export interface DatabaseLocation {
  /** An absolute path; null for a database in memory. */
  readonly file: string | null;
  /** What error messages call the database. */
  readonly description: string;
}

/** Accepts "sqlite:./pawl.db", "sqlite:///srv/pawl.db", "sqlite::memory:", and the same without "sqlite:". */
export function parseLocation(urlOrPath: string): DatabaseLocation {
  return locationOfPath("sqlite", urlOrPath.replace(/^sqlite:(\/\/)?/, ""));
}

/** Checks that the path may be opened, or is ":memory:". The scheme appears in the description and in errors. */
export function locationOfPath(scheme: "sqlite" | "libsql", path: string): DatabaseLocation {
  const description = `${scheme} ${path}`;
  if (path === ":memory:") return { file: null, description };
  if (path === "") {
    throw new StoreError(`The URL names no file; use "${scheme}:./pawl.db" or "${scheme}::memory:".`, {
      transient: false,
    });
  }
  const file = resolve(path);
  if (!existsSync(dirname(file)))
    throwCannotOpen(description, `the directory ${dirname(file)} does not exist; create it first.`);
  if (existsSync(file) && statSync(file).isDirectory()) throwCannotOpen(description, `${file} is a directory.`);
  return { file, description };
}

function throwCannotOpen(description: string, reason: string): never {
  throw new StoreError(`Cannot open ${description}: ${reason}`, { transient: false });
}

/**
 * Every connection is configured with these. With `synchronous = FULL` an acknowledged commit survives a power cut; in
 * WAL mode that is one fsync per commit, whose cost is not measurable at 100 rows per commit. `journal_size_limit`
 * shrinks the WAL file again after a long read has kept SQLite from reusing it.
 */
const connectionPragmas = [
  `PRAGMA busy_timeout = ${busyTimeoutMs}`,
  "PRAGMA synchronous = FULL",
  "PRAGMA temp_store = MEMORY",
  "PRAGMA cache_size = -16384",
  `PRAGMA journal_size_limit = ${64 * 1024 * 1024}`,
];

/**
 * Many processes may open a new file at once. Switching the file to WAL needs exclusive access and does not obey
 * `busy_timeout`, and meanwhile even the pragmas of other processes, which read the file's header, find it locked. So
 * the configuration is retried until the file is no longer locked.
 */
export async function openConnection(
  driver: SqliteDriver,
  { file, description }: DatabaseLocation,
  runtime: Runtime,
): Promise<Connection> {
  try {
    const db = new Connection(driver.open(file ?? ":memory:"));
    try {
      await retryWhileBusy(() => configureConnection(db, file !== null, description), description, runtime);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw toStoreError(error, description);
  }
}

function configureConnection(db: Connection, isFile: boolean, description: string): void {
  for (const pragma of connectionPragmas) db.database.exec(pragma);
  const queryJournalMode = (sql: string) => db.query(sql)[0]?.journal_mode;
  if (
    !isFile ||
    queryJournalMode("PRAGMA journal_mode") === "wal" ||
    queryJournalMode("PRAGMA journal_mode = WAL") === "wal"
  )
    return;
  throwCannotOpen(description, "SQLite cannot use its write-ahead log there; is it on a network file system?");
}
