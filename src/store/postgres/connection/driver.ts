/** The part of `pg` that Pawl uses, typed by its shape, and how it is loaded. */
import { createDriverError } from "../../shared/missing-driver.js";
import type { SqlRow } from "../../sql/dialect.js";

/** A query as `pg` takes it. A query with a name is prepared and planned once per connection. */
export interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
}

/** Sends one query: on a pool as a transaction of its own, on a client within the open transaction. */
export type ExecuteQuery = (query: PgQuery) => Promise<readonly SqlRow[]>;

export interface PgResult {
  readonly rows: readonly SqlRow[];
  /** The first word of the executed command. It is "ROLLBACK" for a COMMIT of a failed transaction. */
  readonly command?: string;
}

export interface PgClient {
  query(query: PgQuery): Promise<PgResult>;
  on(event: "error", listener: (error: Error) => void): unknown;
  /**
   * The session's process id, as the server sent it when the connection was opened. A pooler sends a number of its own.
   */
  readonly processID?: number | null;
  /** The socket, which is destroyed when the server has stopped answering. */
  readonly connection?: { readonly stream?: { destroy(): void } };
}

/** A connection outside of any pool. */
export interface PgStandaloneClient extends PgClient {
  connect(): Promise<unknown>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
}

export interface PgPoolClient extends PgClient {
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  /** "I" when no transaction is open. */
  getTransactionStatus?(): unknown;
  /** Returns the connection to the pool; with `destroy`, closes it instead. */
  release(destroy?: boolean): void;
}

export interface PgPool {
  connect(): Promise<PgPoolClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect", listener: (client: PgPoolClient) => void): unknown;
}

export interface PgModule {
  readonly Pool: new (config: Record<string, unknown>) => PgPool;
  readonly Client: new (config: Record<string, unknown>) => PgStandaloneClient;
}

/** `pg` is an optional peer dependency, so it is imported only when a PostgreSQL store is opened. */
export async function loadPg(): Promise<PgModule> {
  try {
    const module: unknown = await import("pg");
    return (module as { default: PgModule }).default;
  } catch (cause) {
    throw createDriverError(
      "pg",
      "PostgreSQL needs the driver `pg`, which is not installed; run: npm install pg",
      cause,
    );
  }
}
