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
import type { PgClient, PgLoneClient, PgQuery } from "./driver.js";
import { toStoreError } from "./errors.js";
import { whichServer } from "./same-server.js";

/** A condition that holds for one row of `pg_stat_activity a`, or for none. */
type Session = string;

const started = "extract(epoch FROM a.backend_start)::text";
const begun = "extract(epoch FROM a.xact_start)::text";

/** Asked once per connection, or per transaction behind a pooler. Process ids are used again. */
export const whoAmI = `SELECT a.pid, ${started} AS started, ${begun} AS begun, ${whichServer} FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()`;

const pauseMs = 20;

export class Sessions {
  readonly #open: () => PgLoneClient;
  readonly #patienceMs: () => number;
  readonly #runtime: Runtime;
  readonly #known = new WeakMap<PgClient, Session>();
  readonly #marks = new WeakMap<PgClient, string>();
  readonly #lost = new LostSessions<Session>((sessions) => this.#end(sessions));

  /**
   * @param open makes a connection outside of the pools, which may be full of silent ones
   * @param patienceMs how long it may take
   */
  constructor(open: () => PgLoneClient, patienceMs: () => number, runtime: Runtime) {
    this.#open = open;
    this.#patienceMs = patienceMs;
    this.#runtime = runtime;
  }

  /** @param row the answer to `whoAmI` */
  opened(client: PgClient, row: SqlRow | undefined): void {
    if (row !== undefined)
      this.#known.set(client, `a.pid = ${Number(row.pid)} AND ${started} = ${quoted(row.started)}`);
  }

  /** What statements that this connection sends through a pooler begin with. */
  markOf(client: PgClient): string {
    let mark = this.#marks.get(client);
    if (mark === undefined) this.#marks.set(client, (mark = `/* pawl ${randomHex(this.#runtime, 8)} */ `));
    return mark;
  }

  /** Behind a pooler: a transaction has begun. @param row the answer to `whoAmI` in it */
  began(client: PgClient, row: SqlRow | undefined): void {
    this.opened(client, row);
    const session = this.#known.get(client);
    if (session !== undefined) this.#known.set(client, `${session} AND ${begun} = ${quoted(row?.begun)}`);
  }

  /** Behind a pooler: the transaction is over, and its session may be another's. */
  ended(client: PgClient): void {
    this.#known.delete(client);
  }

  #sessionOf(client: PgClient): Session | null {
    const known = this.#known.get(client);
    const mark = this.#marks.get(client);
    const marked = mark === undefined ? undefined : `a.state <> 'idle' AND starts_with(a.query, ${quoted(mark)})`;
    const conditions = [known, marked].filter((condition) => condition !== undefined);
    return conditions.length === 0 ? null : anyOf(conditions);
  }

  /** This connection was given up while something was under way. */
  lost(client: PgClient): void {
    const session = this.#sessionOf(client);
    if (session !== null) this.#lost.add(session);
  }

  get isClear(): boolean {
    return this.#lost.areGone;
  }

  /** Returns when the sessions of all lost connections are gone; throws when that cannot be found out now. */
  clear(): Promise<void> {
    return this.#lost.clear();
  }

  async #end(doomed: readonly Session[]): Promise<void> {
    const giveUpAt = this.#runtime.monotonic() + this.#patienceMs();
    const end = this.#ask(async (query) => {
      for (;;) {
        const rows = await query({ text: `SELECT pg_terminate_backend(a.pid) AS told ${those(anyOf(doomed))}` });
        if (rows.length === 0) break;
        if (this.#runtime.monotonic() > giveUpAt) {
          throw new StoreError("PostgreSQL: the session of a lost connection does not end.", { transient: true });
        }
        await sleep(this.#runtime, pauseMs);
      }
    });
    await end.catch((error: unknown) => {
      // Without the right to end it there is nothing to wait for; the server finds out by itself that its client is gone.
      if (!isForbidden(error)) throw error;
    });
  }

  /** Whether the server is at work on what this connection asked for, or has not got it, or has answered long ago. */
  async isAtWork(client: PgClient): Promise<boolean> {
    const session = this.#sessionOf(client);
    if (session === null) return false;
    const busy = "a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'";
    const rows = await this.#ask((query) =>
      query({ text: `SELECT coalesce(${busy}, false) AS busy ${those(session)}` }),
    );
    return rows.some((row) => row.busy === true);
  }

  async #ask<T>(work: (query: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    const client = this.#open();
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

const those = (session: Session) => `FROM pg_stat_activity a WHERE ${session}`;
const anyOf = (sessions: readonly Session[]): Session => sessions.map((session) => `(${session})`).join(" OR ");
const quoted = (text: unknown) => `'${String(text).replaceAll("'", "''")}'`;
