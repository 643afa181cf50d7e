/** How a store is opened. */
import type { Runtime } from "../../runtime/runtime.js";

/** How many connections one process may have open at most. They are opened when they are needed. */
export interface PoolSizes {
  /** For what Pawl itself reads and writes. Default 6 on PostgreSQL, 10 on MySQL. */
  readonly max?: number;
  /** For `ctx.transaction`, which keeps one for as long as its function runs. Default as for `max`. */
  readonly transactions?: number;
}

export interface StoreOptions {
  /** A virtual clock: replaces the database's now for stamps and due times. Leases and heartbeats stay on real time. */
  readonly clock?: () => number;
  /** False switches off wake-ups between processes (polling must be enough alone). Default true. */
  readonly notify?: boolean;
  /** PostgreSQL: the schema the tables live in. */
  readonly schema?: string;
  /** A libSQL server (Turso, sqld): the token that lets this process in. It may be in the URL instead: `?authToken=…`. */
  readonly authToken?: string;
  /**
   * PostgreSQL: whether a pooler stands in between that shares its sessions, as PgBouncer does in transaction mode (so do
   * Supabase's, Neon's and RDS Proxy). True: no prepared statements, session settings, `LISTEN` or session locks are used.
   * Default "auto": a pooler is noticed, and said in the log once.
   */
  readonly pooled?: boolean | "auto";
  /**
   * PostgreSQL, behind a pooler: the URL of the server itself, for one connection that listens for other processes' changes.
   * Without it they are found by polling.
   */
  readonly listenUrl?: string | undefined;
  /** PostgreSQL and MySQL: how many connections this process may have open. */
  readonly pool?: PoolSizes;
  /**
   * Told of trouble that was dealt with (a retried deadlock), and once, without an error, that the server cannot be reached
   * and that it can be again.
   */
  readonly onWarning?: (message: string, error?: unknown) => void;
  /** Where the store's timers, clocks and random numbers come from. Default: the process. */
  readonly runtime?: Runtime;
}
