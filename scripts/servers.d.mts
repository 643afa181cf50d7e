/** A database server for one test, which may kill and restart it. It ends with the test's process. */
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
  /** SIGKILL: nothing is flushed, and no client is notified. Returns when the process is gone; `start()` recovers. */
  kill9(): Promise<void>;
  /** A crash and a restart: PostgreSQL's `-m immediate`, kill -9 for MariaDB. Returns when it answers again. */
  restartImmediate(): Promise<void>;
  /** Stops the server and removes its data at once. */
  remove(): Promise<void>;
}

/** Starts a PostgreSQL server for the caller, with default settings (fsync on), never as root. */
export function ownPostgres(): Promise<OwnServer>;

/** Starts a MariaDB server for the caller (MySQL where only that is installed), likewise. */
export function ownMariadb(): Promise<OwnServer>;

export interface PgbouncerOptions {
  /** Default "transaction". */
  readonly poolMode?: "transaction" | "session" | "statement";
  /** How many sessions of the server all clients of one database share; default 10. */
  readonly poolSize?: number;
}

/** Starts a PgBouncer for the caller in front of the PostgreSQL server of this URL; its `url` leads to that server. */
export function ownPgbouncer(target: string, options?: PgbouncerOptions): Promise<OwnServer>;

/** Starts a libSQL server (sqld) for the caller. Its one database is what `url` names; there are no accounts. */
export function ownSqld(options?: {
  /** More arguments of the server. */
  readonly args?: readonly string[];
  /** The token that it requires, if the arguments say that it does. */
  readonly token?: string;
}): Promise<OwnServer>;
