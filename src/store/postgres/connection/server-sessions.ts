/**
 * The server's side of our connections. When a connection is given up, its session may still be there: at work, holding
 * locks, about to commit. What it did is not known before it is gone, so it is ended from another connection, and nothing
 * else is sent until it has.
 *
 * Behind a pooler a connection has no session of its own. There each statement begins with a mark of its connection, by
 * which the session that is at work on it can be found, and a transaction is known by its session and its beginning. A
 * session that is neither is at work for another client, and is left alone.
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

/** A condition that holds for one row of `pg_stat_activity a`, or for none. */
type SessionCondition = string;

const backendStart = "extract(epoch FROM a.backend_start)::text";
const transactionStart = "extract(epoch FROM a.xact_start)::text";

/** Asked once per connection, or per transaction behind a pooler. Process ids are used again. */
export const sessionIdentityQuery = `SELECT a.pid, ${backendStart} AS started, ${transactionStart} AS begun, ${serverColumns} FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()`;

const terminatePollMs = 20;

export class ServerSessions {
  readonly #openConnection: () => PgStandaloneClient;
  readonly #timeoutMs: () => number;
  readonly #runtime: Runtime;
  readonly #conditions = new WeakMap<PgClient, SessionCondition>();
  readonly #marks = new WeakMap<PgClient, string>();
  readonly #lostSessions = new LostSessions<SessionCondition>((sessions) => this.#terminate(sessions));

  /**
   * @param openConnection makes a connection outside of the pools, which may be full of silent ones
   * @param timeoutMs how long it may take
   */
  constructor(openConnection: () => PgStandaloneClient, timeoutMs: () => number, runtime: Runtime) {
    this.#openConnection = openConnection;
    this.#timeoutMs = timeoutMs;
    this.#runtime = runtime;
  }

  /** @param row the answer to `whoAmI` */
  recordSession(client: PgClient, row: SqlRow | undefined): void {
    if (row !== undefined)
      this.#conditions.set(client, `a.pid = ${Number(row.pid)} AND ${backendStart} = ${quoteLiteral(row.started)}`);
  }

  /** What statements that this connection sends through a pooler begin with. */
  markOf(client: PgClient): string {
    let mark = this.#marks.get(client);
    if (mark === undefined) this.#marks.set(client, (mark = `/* pawl ${randomHex(this.#runtime, 8)} */ `));
    return mark;
  }

  /** Behind a pooler: a transaction has begun. @param row the answer to `whoAmI` in it */
  recordTransaction(client: PgClient, row: SqlRow | undefined): void {
    this.recordSession(client, row);
    const session = this.#conditions.get(client);
    if (session !== undefined)
      this.#conditions.set(client, `${session} AND ${transactionStart} = ${quoteLiteral(row?.begun)}`);
  }

  /** Behind a pooler: the transaction is over, and its session may be another's. */
  forgetSession(client: PgClient): void {
    this.#conditions.delete(client);
  }

  #sessionOf(client: PgClient): SessionCondition | null {
    const bySession = this.#conditions.get(client);
    const mark = this.#marks.get(client);
    const byMark = mark === undefined ? undefined : `a.state <> 'idle' AND starts_with(a.query, ${quoteLiteral(mark)})`;
    const conditions = [bySession, byMark].filter((condition) => condition !== undefined);
    return conditions.length === 0 ? null : anyOf(conditions);
  }

  /** This connection was given up while something was under way. */
  recordLost(client: PgClient): void {
    const session = this.#sessionOf(client);
    if (session !== null) this.#lostSessions.add(session);
  }

  get haveLostEnded(): boolean {
    return this.#lostSessions.haveEnded;
  }

  /** Returns when the sessions of all lost connections are gone; throws when that cannot be found out now. */
  ensureLostEnded(): Promise<void> {
    return this.#lostSessions.ensureEnded();
  }

  async #terminate(sessions: readonly SessionCondition[]): Promise<void> {
    const deadlineAt = this.#runtime.monotonic() + this.#timeoutMs();
    const termination = this.#withConnection(async (query) => {
      for (;;) {
        const rows = await query({
          text: `SELECT pg_terminate_backend(a.pid) AS told ${fromActivityWhere(anyOf(sessions))}`,
        });
        if (rows.length === 0) break;
        if (this.#runtime.monotonic() > deadlineAt) {
          throw new StoreError("PostgreSQL: the session of a lost connection does not end.", { transient: true });
        }
        await sleep(this.#runtime, terminatePollMs);
      }
    });
    await termination.catch((error: unknown) => {
      // Without the right to end it there is nothing to wait for; the server finds out by itself that its client is gone.
      if (!isForbidden(error)) throw error;
    });
  }

  /** Whether the server is at work on what this connection asked for, or has not got it, or has answered long ago. */
  async isExecuting(client: PgClient): Promise<boolean> {
    const session = this.#sessionOf(client);
    if (session === null) return false;
    const isBusy = "a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'";
    const rows = await this.#withConnection((query) =>
      query({ text: `SELECT coalesce(${isBusy}, false) AS busy ${fromActivityWhere(session)}` }),
    );
    return rows.some((row) => row.busy === true);
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

const fromActivityWhere = (session: SessionCondition) => `FROM pg_stat_activity a WHERE ${session}`;
const anyOf = (sessions: readonly SessionCondition[]): SessionCondition =>
  sessions.map((session) => `(${session})`).join(" OR ");
const quoteLiteral = (text: unknown) => `'${String(text).replaceAll("'", "''")}'`;
