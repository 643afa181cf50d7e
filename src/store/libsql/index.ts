/** libSQL, Turso's fork of SQLite. Files use the SQLite store with another library; servers use store/libsql-remote. */

import { systemRuntime } from "../../runtime/system.js";
import type { Store, StoreOptions } from "../contract/store.js";
import { isRemoteUrl } from "../libsql-remote/address.js";
import { SqliteStore } from "../sqlite/store.js";
import { loadLibsql } from "./driver.js";
import { parseLibsqlLocation } from "./location.js";

export type { LibsqlTransactionHandle } from "../libsql-remote/index.js";
export type { SqliteHandle } from "../sqlite/handle.js";

/**
 * Opens a database file, and creates it if it does not exist (its directory must exist), or connects to a server.
 *
 * @example
 * const store = await openLibsql("libsql:./pawl.db"); // or "file:./pawl.db", or "libsql::memory:"
 * await store.migrate();
 *
 * @example
 * const store = await openLibsql("libsql://shop.turso.io", { authToken: process.env.TURSO_AUTH_TOKEN });
 */
export async function openLibsql(url: string, options: StoreOptions = {}): Promise<Store> {
  if (isRemoteUrl(url)) return (await import("../libsql-remote/index.js")).openRemoteLibsql(url, options);
  return SqliteStore.open(await loadLibsql(), parseLibsqlLocation(url), options, options.runtime ?? systemRuntime);
}
