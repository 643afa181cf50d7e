/** The options with which a store is opened. */
import type { Runtime } from "../../runtime/runtime.js";

/** The maximum number of connections that one process has open. Connections are opened when they are needed. */
export interface PoolSizes {
  /** For Pawl's own reads and writes. Default 6 on PostgreSQL, 10 on MySQL. */
  readonly max?: number;
  /** For `ctx.transaction`, which keeps a connection for as long as its function runs. Default: the same as `max`. */
  readonly transactions?: number;
}

/** The options of all stores. The comment of an option that only some databases have begins with their names. */
export interface StoreOptions {
  /**
   * A virtual clock for event timestamps and due times, instead of the database's. Leases and heartbeats use real time.
   */
  readonly clock?: () => number;
  /** False switches off hints between processes, so that they find each other's changes by polling. Default true. */
  readonly notify?: boolean;
  /** PostgreSQL: the schema of Pawl's tables. Default: the first schema of the search path that exists. */
  readonly schema?: string;
  /** libSQL servers (Turso, sqld): the authentication token. The URL may contain it instead: `?authToken=…`. */
  readonly authToken?: string;
  /**
   * PostgreSQL: whether the connection goes through a pooler that shares server sessions between clients, as PgBouncer
   * does in transaction mode (and the poolers of Supabase, Neon and RDS). With true, Pawl uses no prepared statements,
   * session settings, `LISTEN` or session locks. Default "auto": Pawl detects such a pooler and logs one warning.
   */
  readonly pooled?: boolean | "auto";
  /**
   * PostgreSQL, behind a pooler: the URL of the server itself, for one connection that listens for the changes of other
   * processes. Without `listenUrl`, Pawl finds those changes by polling.
   */
  readonly listenUrl?: string | undefined;
  /** PostgreSQL and MySQL: the maximum number of connections of this process. */
  readonly pool?: PoolSizes;
  /**
   * The store calls this function for problems that it has handled itself, for example a deadlock after which it
   * retried. It also calls the function, without an error, once when the server becomes unreachable and once when the
   * server can be reached again.
   */
  readonly onWarning?: (message: string, error?: unknown) => void;
  /** The source of the store's timers, clocks and random numbers. Default: those of the process. */
  readonly runtime?: Runtime;
}
