/**
 * The server sessions of this process's connections. When a connection is given up, its session may still exist:
 * executing, holding locks, about to commit. Its outcome is unknown until it has ended, so Pawl terminates the session
 * from another connection, and sends no other statement before that.
 *
 * Behind a pooler a connection has no session of its own. There each statement begins with a mark of its connection, by
 * which the session that executes it can be found, and a transaction is identified by its session and its start. All
 * other sessions work for other clients and are left alone.
 */

import { StoreError } from "../../../core/errors/errors.js";
import { randomHex } from "../../../runtime/random-hex.js";
import type { Runtime } from "../../../runtime/runtime.js";
import { sleep } from "../../../runtime/wait.js";
import { LostSessions } from "../../shared/lost-sessions.js";
import type { SqlRow } from "../../sql/dialect.js";
import type { PgClient, PgQuery, PgStandaloneClient } from "./driver.js";
import { toStoreError } from "./errors.js";
import { serverColumns } from "./server-identity.js";

/** A condition that is true for at most one row of `pg_stat_activity a`. */
type SessionCondition = string;

const backendStart = "extract(epoch FROM a.backend_start)::text";
const transactionStart = "extract(epoch FROM a.xact_start)::text";

/**
 * Sent once per connection, or per transaction behind a pooler. Process ids are reused, so only the process id together
 * with the start time identifies a session.
 */
export const sessionIdentityQuery = `SELECT a.pid, ${backendStart} AS backend_started, ${transactionStart} AS transaction_started, ${serverColumns} FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()`;

const terminatePollMs = 20;

export class ServerSessions {
  readonly #openConnection: () => PgStandaloneClient;
  readonly #timeoutMs: () => number;
  readonly #runtime: Runtime;
  readonly #conditions = new WeakMap<PgClient, SessionCondition>();
  readonly #marks = new WeakMap<PgClient, string>();
  readonly #lostSessions = new LostSessions<SessionCondition>((sessions) => this.#terminate(sessions));

  /**
   * @param openConnection opens a connection outside of the pools, which may be full of connections that do not answer
   * @param timeoutMs how long terminating sessions may take
   */
  constructor(openConnection: () => PgStandaloneClient, timeoutMs: () => number, runtime: Runtime) {
    this.#openConnection = openConnection;
    this.#timeoutMs = timeoutMs;
    this.#runtime = runtime;
  }

  /** @param row the result of `sessionIdentityQuery` */
  recordSession(client: PgClient, row: SqlRow | undefined): void {
    if (row !== undefined)
      this.#conditions.set(
        client,
        `a.pid = ${Number(row.pid)} AND ${backendStart} = ${quoteLiteral(row.backend_started)}`,
      );
  }

  /** The comment with which every statement of this connection begins behind a pooler. */
  markOf(client: PgClient): string {
    let mark = this.#marks.get(client);
    if (mark === undefined) this.#marks.set(client, (mark = `/* pawl ${randomHex(this.#runtime, 8)} */ `));
    return mark;
  }

  /**
   * Called behind a pooler when a transaction has begun.
   *
   * @param row the result of `sessionIdentityQuery` in that transaction
   */
  recordTransaction(client: PgClient, row: SqlRow | undefined): void {
    this.recordSession(client, row);
    const sessionCondition = this.#conditions.get(client);
    if (sessionCondition !== undefined)
      this.#conditions.set(
        client,
        `${sessionCondition} AND ${transactionStart} = ${quoteLiteral(row?.transaction_started)}`,
      );
  }

  /** Called behind a pooler when the transaction has ended: its session may now work for another client. */
  forgetSession(client: PgClient): void {
    this.#conditions.delete(client);
  }

  #conditionOf(client: PgClient): SessionCondition | null {
    const sessionCondition = this.#conditions.get(client);
    const mark = this.#marks.get(client);
    const markCondition =
      mark === undefined ? undefined : `a.state <> 'idle' AND starts_with(a.query, ${quoteLiteral(mark)})`;
    const conditions = [sessionCondition, markCondition].filter((condition) => condition !== undefined);
    return conditions.length === 0 ? null : anyOf(conditions);
  }

  /** Called when this connection was given up while a statement may have been running. */
  recordLost(client: PgClient): void {
    const condition = this.#conditionOf(client);
    if (condition !== null) this.#lostSessions.add(condition);
  }

  get haveLostEnded(): boolean {
    return this.#lostSessions.haveEnded;
  }

  /** Resolves when the sessions of all lost connections have ended; rejects when that cannot be determined now. */
  ensureLostEnded(): Promise<void> {
    return this.#lostSessions.ensureEnded();
  }

  async #terminate(conditions: readonly SessionCondition[]): Promise<void> {
    const deadlineAt = this.#runtime.monotonic() + this.#timeoutMs();
    const termination = this.#withConnection(async (query) => {
      for (;;) {
        const rows = await query({
          text: `SELECT pg_terminate_backend(a.pid) AS is_signaled ${fromActivityWhere(anyOf(conditions))}`,
        });
        if (rows.length === 0) break;
        if (this.#runtime.monotonic() > deadlineAt) {
          throw new StoreError("PostgreSQL: the session of a lost connection does not end.", { transient: true });
        }
        await sleep(this.#runtime, terminatePollMs);
      }
    });
    await termination.catch((error: unknown) => {
      // Without the right to terminate the session, trying again is pointless; the server itself notices sooner or
      // later that the client has disconnected.
      if (!isForbidden(error)) throw error;
    });
  }

  /**
   * Whether the server is executing a statement of this connection; false if the server never received the statement or
   * has answered it.
   */
  async isExecuting(client: PgClient): Promise<boolean> {
    const condition = this.#conditionOf(client);
    if (condition === null) return false;
    const isActive = "a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'";
    const rows = await this.#withConnection((query) =>
      query({ text: `SELECT coalesce(${isActive}, false) AS is_executing ${fromActivityWhere(condition)}` }),
    );
    return rows.some((row) => row.is_executing === true);
  }

  async #withConnection<T>(work: (query: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    const client = this.#openConnection();
    client.on("error", () => {});
    try {
      await client.connect();
      return await work(async (query) => (await client.query(query)).rows);
    } catch (error) {
      throw toStoreError(error);
    } finally {
      client.end().catch(() => {});
    }
  }
}

const isForbidden = (error: unknown) =>
  ((error as { cause?: unknown }).cause as { code?: unknown } | undefined)?.code === "42501";

const fromActivityWhere = (condition: SessionCondition) => `FROM pg_stat_activity a WHERE ${condition}`;
const anyOf = (conditions: readonly SessionCondition[]): SessionCondition =>
  conditions.map((condition) => `(${condition})`).join(" OR ");
const quoteLiteral = (text: unknown) => `'${String(text).replaceAll("'", "''")}'`;
