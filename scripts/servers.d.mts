/** A database server of a test's own, which it may kill and restart. Gone when the test's process ends. */
export interface OwnServer {
  /** Where to connect: an administrator without a password, the empty database `pawl`. */
  readonly url: string;
  readonly port: number;
  /** The temporary folder with the data and the server's `log`. */
  readonly dir: string;
  /** The server's process (PostgreSQL: the postmaster); undefined while it is down. */
  readonly pid: number | undefined;
  /** Starts the server (again) and returns when it answers. Does nothing while it runs. */
  start(): Promise<void>;
  /** An orderly stop. The data stays, `start()` continues with it. */
  stop(): Promise<void>;
  /** SIGKILL: nothing is flushed, nobody is told. Returns when the process is gone; `start()` recovers. */
  kill9(): Promise<void>;
  /** A crash and a restart: PostgreSQL's `-m immediate`, kill -9 for MariaDB. Returns when it answers again. */
  restartImmediate(): Promise<void>;
  /** Stops the server and removes its data at once. */
  remove(): Promise<void>;
}

/** A PostgreSQL server of the caller's own, started, with default settings (fsync on), never run by root. */
export function ownPostgres(): Promise<OwnServer>;

/** A MariaDB (or, where only that is installed, MySQL) server of the caller's own, started, likewise. */
export function ownMariadb(): Promise<OwnServer>;

export interface PgbouncerOptions {
  /** Default "transaction". */
  readonly poolMode?: "transaction" | "session" | "statement";
  /** How many sessions of the server all clients of one database share; default 10. */
  readonly poolSize?: number;
}

/** PgBouncer of the caller's own, started, in front of the PostgreSQL server that the URL names; its `url` leads there. */
export function ownPgbouncer(target: string, options?: PgbouncerOptions): Promise<OwnServer>;

/** A libSQL server (sqld) of the caller's own, started. Its one database is what `url` names; there are no accounts. */
export function ownSqld(options?: {
  /** More arguments of the server. */
  readonly args?: readonly string[];
  /** The token that it asks for, if the arguments say that it does. */
  readonly token?: string;
}): Promise<OwnServer>;
