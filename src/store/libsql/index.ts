/** libSQL, Turso's fork of SQLite: on files the SQLite store with another library, on servers a store of its own. */

import { systemRuntime } from "../../runtime/system.js";
import type { Store, StoreOptions } from "../contract/store.js";
import { isRemoteUrl } from "../libsql-remote/address.js";
import { SqliteStore } from "../sqlite/store.js";
import { loadLibsql } from "./driver.js";
import { parseLibsqlLocation } from "./location.js";

export type { LibsqlTransactionHandle } from "../libsql-remote/index.js";
export type { SqliteHandle } from "../sqlite/handle.js";

/**
 * Opens (and if need be creates) a database file, whose directory must exist, or connects to a server.
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
