/** The options with which a store is opened. */
import type { Runtime } from "../../runtime/runtime.js";

/** The maximum number of connections that one process has open. Connections are opened when they are needed. */
export interface PoolSizes {
  /** For Pawl's own reads and writes. Default 6 on PostgreSQL, 10 on MySQL. */
  readonly max?: number;
  /** For `ctx.transaction`, which keeps a connection for as long as its function runs. Default: the same as `max`. */
  readonly transactions?: number;
}

/** Options that all stores take; those of one database say so. */
export interface StoreOptions {
  /**
   * A virtual clock for event timestamps and due times, instead of the database's. Leases and heartbeats use real time.
   */
  readonly clock?: () => number;
  /** False switches off hints between processes, so that they find each other's changes by polling. Default true. */
  readonly notify?: boolean;
  /** PostgreSQL: the schema of Pawl's tables. Default: the first schema of the search path that exists. */
  readonly schema?: string;
  /** libSQL servers (Turso, sqld): the authentication token. It may be in the URL instead: `?authToken=…`. */
  readonly authToken?: string;
  /**
   * PostgreSQL: whether the connection goes through a pooler that shares server sessions between clients, as PgBouncer
   * does in transaction mode (and the poolers of Supabase, Neon and RDS). With true, Pawl uses no prepared statements,
   * session settings, `LISTEN` or session locks. Default "auto": Pawl detects such a pooler and logs one warning.
   */
  readonly pooled?: boolean | "auto";
  /**
   * PostgreSQL, behind a pooler: the URL of the server itself, for one connection that listens for the changes of other
   * processes. Without it, Pawl finds them by polling.
   */
  readonly listenUrl?: string | undefined;
  /** PostgreSQL and MySQL: the maximum number of connections of this process. */
  readonly pool?: PoolSizes;
  /**
   * Called for problems that the store has handled itself (a deadlock that was retried). Called without an error, once
   * each time, when the server becomes unreachable and when it can be reached again.
   */
  readonly onWarning?: (message: string, error?: unknown) => void;
  /** The source of the store's timers, clocks and random numbers. Default: those of the process. */
  readonly runtime?: Runtime;
}
