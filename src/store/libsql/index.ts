/** libSQL: the SQLite store with another library, Turso's fork of SQLite. Local files only. */
import { SqliteStore } from "../sqlite/store.js";
import type { Store, StoreOptions } from "../store.js";
import { loadLibsql } from "./driver.js";
import { locateLibsql } from "./location.js";

export type { SqliteHandle } from "../sqlite/handle.js";

/**
 * Opens (and if need be creates) a database file; its directory must exist.
 *
 * @example
 * const store = await openLibsql("libsql:./pawl.db"); // or "file:./pawl.db", or "libsql::memory:"
 * await store.migrate();
 */
export async function openLibsql(url: string, options: StoreOptions = {}): Promise<Store> {
  const location = locateLibsql(url);
  return SqliteStore.open(await loadLibsql(), location, options);
}
