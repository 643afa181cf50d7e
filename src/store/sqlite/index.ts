/** The SQLite store, which is the default: one file, used by any number of processes on one machine. */
import { systemRuntime } from "../../runtime/system.js";
import type { Store, StoreOptions } from "../contract/store.js";
import { type DriverName, loadDriver } from "./driver.js";
import { parseLocation } from "./open.js";
import { SqliteStore } from "./store.js";

export type { SqliteHandle } from "./handle.js";

/** Options of {@link openSqlite}. */
export interface SqliteOptions extends StoreOptions {
  /** Which SQLite library to use. Default: node:sqlite where Node has it, else better-sqlite3. */
  readonly driver?: DriverName;
}

/**
 * Opens a database file, and creates it if it does not exist. Its directory must exist.
 *
 * @example
 * const store = await openSqlite("sqlite:./pawl.db"); // or a plain path, or ":memory:"
 * await store.migrate();
 */
export async function openSqlite(urlOrPath: string, options: SqliteOptions = {}): Promise<Store> {
  const location = parseLocation(urlOrPath);
  return SqliteStore.open(await loadDriver(options.driver), location, options, options.runtime ?? systemRuntime);
}
