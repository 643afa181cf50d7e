/**
 * The connections, and what is tried again. The rule: a statement is repeated only when it is certain that nothing was
 * written, or when it writes nothing; a write whose answer was lost is reported, and the caller looks what became of it.
 */
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../../core/errors.js";
import { Reach } from "../reach.js";
import type { SqlRow } from "../sql/dialect.js";
import { StatementDeadline } from "../statement-deadline.js";
import type { PgClient, PgModule, PgPool, PgPoolClient, PgQuery, PgResult } from "./driver.js";
import {
  isCollision,
  isConnectionLost,
  isGone,
  isNeverSent,
  isStalePlan,
  toConnectError,
  toStoreError,
} from "./errors.js";
import type { History } from "./history.js";
import { Sessions, whoAmI } from "./sessions.js";

type OnTrouble = (what: string, error?: unknown) => void;

/** Enough for a flush, a claim, a beat and reads at once; commits of one process go one after the other anyway. */
const poolSize = 6;
const connectionTimeoutMs = 10_000;
const attempts = 8;

/**
 * A plan is made once and kept, and at that time a queue's tables are often empty; what the planner likes then (to begin
 * with all of a table, since there is nothing in it) is ruinous later. So nothing is left to it: planned once, tables are
 * only ever searched by index, each by a condition of its own, and what was found is joined by hashing. plans.test.ts
 * holds every statement to this. jit would be triggered by the costs of what is switched off.
 */
export const sessionSettings = [
  "plan_cache_mode = force_generic_plan",
  "enable_seqscan = off",
  "enable_bitmapscan = off",
  "enable_nestloop = off",
  "enable_mergejoin = off",
  "jit = off",
  // Statements wait for the row they need and look again; under REPEATABLE READ they would fail.
  "default_transaction_isolation = 'read committed'",
  "statement_timeout = 0",
  "lock_timeout = 0",
];

/** For transactions that run user code, which must not be slowed by our settings. */
const transactionSettings = ["statement_timeout = 0", "idle_in_transaction_session_timeout = '60s'"];

export class Database {
  readonly #pool: PgPool;
  readonly #transactions: PgPool;
  readonly #onTrouble: OnTrouble;
  readonly reach: Reach;
  readonly deadline = new StatementDeadline();
  readonly #sessions: Sessions;
  #history: History | null = null;
  /** When a connection was last found to be silent, and when each was opened. */
  #silentAt = Number.NEGATIVE_INFINITY;
  readonly #openedAt = new WeakMap<PgClient, number>();
  /** All that are open, or about to be. */
  readonly #sockets = new Set<Socket>();
  #closed = false;
  #isCutOff = false;

  constructor(pg: PgModule, url: string, onTrouble: OnTrouble) {
    this.#onTrouble = onTrouble;
    this.reach = new Reach((what) => {
      if (!this.#closed) onTrouble(what);
    });
    const rescueConfig = () => {
      // On a busy machine a connection takes its time, and a statement must not be given up for that.
      const patienceMs = Math.min(Math.max(this.deadline.ms, 5_000), connectionTimeoutMs);
      return { ...this.connectionConfig(url), connectionTimeoutMillis: patienceMs, query_timeout: patienceMs };
    };
    this.#sessions = new Sessions(
      () => new pg.Client(rescueConfig()),
      () => this.deadline.ms,
    );
    this.#pool = this.#open(pg, url, sessionSettings);
    // No connection is opened before the first is asked for. Apart, so that user code cannot take the commits' places.
    this.#transactions = this.#open(pg, url, transactionSettings);
  }

  #open(pg: PgModule, url: string, settings: readonly string[]): PgPool {
    const text = [...settings.map((setting) => `SET ${setting}`), whoAmI].join("; ");
    const pool = new pg.Pool({
      ...this.connectionConfig(url),
      max: poolSize,
      idleTimeoutMillis: 60_000,
      onConnect: async (client: PgClient) => {
        this.#openedAt.set(client, performance.now());
        const results = (await this.ask(client, { text })) as unknown as readonly PgResult[];
        this.#sessions.opened(client, results.at(-1)?.rows[0]);
        await this.#askForTheLast(client);
      },
    });
    // A connection that breaks while idle leaves the pool by itself; while it is used its query fails. Both also emit.
    pool.on("error", (error) => this.reach.lost(error));
    pool.on("connect", (client) => client.on("error", () => {}));
    return pool;
  }

  /** @param history what a new connection is asked for before it is used */
  remember(history: History): void {
    this.#history = history;
  }

  async #askForTheLast(client: PgClient): Promise<void> {
    const question = this.#history?.question() ?? null;
    if (question === null) return;
    const there = await this.ask(client, question).then(
      ({ rows }) => rows[0]?.there === true,
      (error: unknown) => {
        if (isConnectionLost(error)) throw error;
        // Not an answer to the question; whatever is wrong will be told by the statement that the connection is for.
        return true;
      },
    );
    if (there) return;
    this.#history?.wasLost();
    this.#onTrouble(
      "does not have what was written last: it is a restored copy, or a standby that was behind. Workers begin a new epoch, with the logs as they are.",
    );
  }

  /** Where this is, for people, and the schema that tables go to when nobody says otherwise. */
  async describe(): Promise<{ readonly schema: string | null; readonly place: string }> {
    return this.#attempt(async (client) => {
      const { rows } = await this.ask(client, { text: "SELECT current_schema() AS schema" });
      const place = `${client.host ?? "localhost"}:${client.port ?? 5432}/${client.database ?? ""}`;
      return { schema: (rows[0]?.schema as string | null | undefined) ?? null, place };
    }, true);
  }

  /** Anything that writes nothing: tried again whatever happened to the connection. */
  async read(query: PgQuery, check?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#attempt((client) => this.#send(client, query, check), true)).rows;
  }

  /**
   * One statement that is a transaction.
   *
   * @param check throws when it must not be sent any more; what a new connection was asked for may be the reason
   */
  async write(query: PgQuery, check?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#attempt((client) => this.#send(client, query, check), false)).rows;
  }

  async #send(client: PgClient, query: PgQuery, check: (() => void) | undefined): Promise<PgResult> {
    check?.();
    return this.ask(client, query);
  }

  /** Several statements in one transaction; `work` may be called again when nothing of it was committed. */
  async transaction<T>(work: (run: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    return this.#attempt(async (client) => {
      const run = async (query: PgQuery) => (await this.ask(client, query)).rows;
      await run({ text: "BEGIN" });
      let result: T;
      try {
        result = await work(run);
      } catch (error) {
        if (!isConnectionLost(error)) await run({ text: "ROLLBACK" });
        throw error;
      }
      await run({ text: "COMMIT" });
      return result;
    }, false);
  }

  /** A connection for a transaction that runs user code, and the answer to `begin`. The caller returns it. */
  async checkOut(begin: string): Promise<{ readonly client: PgPoolClient; readonly results: readonly PgResult[] }> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#transactions);
      try {
        return { client, results: (await this.ask(client, { text: begin })) as unknown as readonly PgResult[] };
      } catch (error) {
        client.release(true);
        if (isConnectionLost(error)) this.reach.lost(error);
        if (attempt === attempts || !isConnectionLost(error)) throw toStoreError(error);
        await backOff(attempt);
      }
    }
  }

  /** One statement on one connection. Silence beyond the deadline is an error, and drops the connection. */
  ask(client: PgClient, query: PgQuery): Promise<PgResult> {
    return this.deadline.within(client.query(query), {
      isAtWork: () => this.#sessions.isAtWork(client),
      cut: () => {
        this.#silentAt = performance.now();
        drop(client);
      },
    });
  }

  /** A connection on which something may be under way is given up. Returns when it cannot have any effect any more. */
  async giveUp(client: PgPoolClient): Promise<void> {
    this.#sessions.lost(client);
    drop(client);
    client.release(true);
    await this.#endLostSessions();
  }

  /** If that fails now, the next caller waits for it. */
  async #endLostSessions(): Promise<void> {
    if (this.#isCutOff) return;
    await this.#sessions.clear().catch((error: unknown) => this.reach.lost(error));
  }

  /** What all connections of a store have in common. */
  connectionConfig(url: string): Record<string, unknown> {
    return { ...connectionConfig(url), stream: () => this.#newSocket() };
  }

  #newSocket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }

  /** Whatever is still waiting for the server is told that it has gone. */
  cutOff(): void {
    this.#isCutOff = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([this.#pool.end(), this.#transactions.end()]);
  }

  async #attempt<T>(work: (client: PgPoolClient) => Promise<T>, repeatable: boolean): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#pool);
      const { losses } = this.reach;
      try {
        const result = await work(client);
        client.release();
        this.reach.answered(losses);
        return result;
      } catch (error) {
        const lost = isConnectionLost(error);
        if (lost && !isNeverSent(error) && !isGone(error)) await this.giveUp(client);
        else client.release(lost || isStalePlan(error));
        if (lost) this.reach.lost(error);
        const again = isCollision(error) || isStalePlan(error) || isNeverSent(error) || (lost && repeatable);
        if (!again || attempt === attempts || this.#isCutOff) throw asThrown(error);
        if (!lost) this.#onTrouble("A statement is tried again.", error);
      }
      await backOff(attempt);
    }
  }

  /** Where one connection swallows everything, others that were open at the time do so, too: they are not even tried. */
  async #connect(pool: PgPool): Promise<PgPoolClient> {
    for (;;) {
      const client = await pool.connect();
      if ((this.#openedAt.get(client) ?? 0) > this.#silentAt) return client;
      drop(client);
      client.release(true);
    }
  }

  /** Nothing has been sent yet, so this may be tried for a while: a server that restarts is back in a second or two. */
  async #acquire(pool: PgPool): Promise<PgPoolClient> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isCutOff) throw new StoreError("The store is closed.", { transient: false, unreachable: true });
      try {
        if (!this.#sessions.isClear) await this.#sessions.clear();
        return await this.#connect(pool);
      } catch (error) {
        const thrown = toConnectError(error);
        if (!(thrown instanceof StoreError) || !thrown.transient) throw thrown;
        this.reach.lost(error);
        if (attempt >= 4) throw thrown;
      }
      await backOff(attempt + 3);
    }
  }
}

export function connectionConfig(url: string): Record<string, unknown> {
  return {
    connectionString: url,
    application_name: "pawl",
    connectionTimeoutMillis: connectionTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** Without a word to the server, which may not be there any more. */
function drop(client: PgClient): void {
  client.connection?.stream?.destroy();
}

/** Answers that the caller asked about (a taken event number) stay as they are. */
const asThrown = (error: unknown): unknown =>
  (error as { code?: string } | null)?.code === "23505" ? error : toStoreError(error);

/** 5 ms, 10, 20 … and as much again by chance, so that those who collided do not meet again. */
async function backOff(attempt: number): Promise<void> {
  await sleep(Math.min(5 * 2 ** attempt, 1_000) * (0.5 + Math.random()));
}
