/**
 * The server's side of our connections. When a connection is given up, its session may still be there: at work, holding
 * locks, about to commit. What it did is not known before it is gone, so it is ended from another connection, and nothing
 * else is sent until it has.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../../core/errors.js";
import type { SqlRow } from "../sql/dialect.js";
import type { PgClient, PgLoneClient, PgQuery } from "./driver.js";
import { toStoreError } from "./errors.js";

interface Session {
  readonly pid: number;
  /** Process ids are used again. */
  readonly startedAt: string;
}

const started = "extract(epoch FROM a.backend_start)::text";

/** Asked once per connection. */
export const whoAmI = `SELECT a.pid, ${started} AS started FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()`;

const these = `FROM pg_stat_activity a WHERE (a.pid, ${started}) IN (SELECT * FROM unnest($1::int[], $2::text[]))`;

const pauseMs = 20;

export class Sessions {
  readonly #open: () => PgLoneClient;
  readonly #patienceMs: () => number;
  readonly #known = new WeakMap<PgClient, Session>();
  readonly #doomed = new Set<Session>();
  #clearing: Promise<void> | null = null;

  /**
   * @param open makes a connection outside of the pools, which may be full of silent ones
   * @param patienceMs how long it may take
   */
  constructor(open: () => PgLoneClient, patienceMs: () => number) {
    this.#open = open;
    this.#patienceMs = patienceMs;
  }

  /** @param row the answer to `whoAmI` */
  opened(client: PgClient, row: SqlRow | undefined): void {
    if (row !== undefined) this.#known.set(client, { pid: Number(row.pid), startedAt: String(row.started) });
  }

  /** This connection was given up while something was under way. */
  lost(client: PgClient): void {
    const session = this.#known.get(client);
    if (session !== undefined) this.#doomed.add(session);
  }

  get isClear(): boolean {
    return this.#doomed.size === 0;
  }

  /** Returns when the sessions of all lost connections are gone; throws when that cannot be found out now. */
  async clear(): Promise<void> {
    while (!this.isClear) {
      this.#clearing ??= this.#clear().finally(() => {
        this.#clearing = null;
      });
      await this.#clearing;
    }
  }

  async #clear(): Promise<void> {
    const doomed = [...this.#doomed];
    const giveUpAt = performance.now() + this.#patienceMs();
    const end = this.#ask(async (query) => {
      for (;;) {
        const rows = await query({
          text: `SELECT pg_terminate_backend(a.pid) AS told ${these}`,
          values: arrays(doomed),
        });
        if (rows.length === 0) break;
        if (performance.now() > giveUpAt) {
          throw new StoreError("PostgreSQL: the session of a lost connection does not end.", { transient: true });
        }
        await sleep(pauseMs);
      }
    });
    await end.catch((error: unknown) => {
      // Without the right to end it there is nothing to wait for; the server finds out by itself that its client is gone.
      if (!isForbidden(error)) throw error;
    });
    for (const session of doomed) this.#doomed.delete(session);
  }

  /** Whether the server is at work on what this connection asked for, or has not got it, or has answered long ago. */
  async isAtWork(client: PgClient): Promise<boolean> {
    const session = this.#known.get(client);
    if (session === undefined) return false;
    const busy = "a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'";
    const text = `SELECT coalesce(${busy}, false) AS busy ${these}`;
    const [row] = await this.#ask((query) => query({ text, values: arrays([session]) }));
    return row?.busy === true;
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

const arrays = (sessions: readonly Session[]) => [
  sessions.map(({ pid }) => pid),
  sessions.map(({ startedAt }) => startedAt),
];
