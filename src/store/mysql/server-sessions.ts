/**
 * The server's side of our connections. When a connection is given up, its session may still be there: at work, holding
 * locks, about to commit. What it did is not known before it is gone, so it is ended from another connection, and nothing
 * else is sent until it has.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import { LostSessions } from "../shared/lost-sessions.js";
import type { StatementDeadline } from "../shared/statement-deadline.js";
import type { Driver, DriverConnection } from "./driver.js";

interface ServerSession {
  readonly id: number;
  /**
   * Our end of the connection, as the server sees it. After a restart, and on other servers behind the same address, the
   * same id is another session.
   */
  readonly client: string;
}

/** Not from information_schema, which makes a table on disk to answer. Others' sessions are left out, or do no harm. */
export const listSessions = "SHOW PROCESSLIST";

const pollIntervalMs = 20;
const noSuchThreadErrno = 1094;
/** The server is done, and its answer does not get through: in MariaDB's words, and in MySQL's. */
const answeringStatePattern = /writing to net|sending to client/i;

export class ServerSessions {
  readonly #driver: Driver;
  readonly #uri: string;
  readonly #deadline: StatementDeadline;
  readonly #runtime: Runtime;
  readonly #sessions = new WeakMap<DriverConnection, ServerSession>();
  readonly #lostSessions = new LostSessions<ServerSession>((sessions) => this.#endSessions(sessions));

  constructor(driver: Driver, uri: string, deadline: StatementDeadline, runtime: Runtime) {
    this.#driver = driver;
    this.#uri = uri;
    this.#deadline = deadline;
    this.#runtime = runtime;
  }

  /** @param processList the answer to `listSessions` on this connection */
  register(connection: DriverConnection, id: number, processList: unknown): void {
    const client = parseProcessList(processList).find((row) => row.id === id)?.client;
    if (client !== undefined) this.#sessions.set(connection, { id, client });
  }

  /** This connection was given up while something was under way. */
  markLost(connection: DriverConnection): void {
    const session = this.#sessions.get(connection);
    if (session !== undefined) this.#lostSessions.add(session);
  }

  get hasNoLostSessions(): boolean {
    return this.#lostSessions.haveEnded;
  }

  /** Returns when the sessions of all lost connections are gone; throws when that cannot be found out now. */
  endLostSessions(): Promise<void> {
    return this.#lostSessions.ensureEnded();
  }

  /** Tells the server to end the session of a connection; its locks are free as soon as it has rolled back. */
  async killSession(connection: DriverConnection): Promise<void> {
    const session = this.#sessions.get(connection);
    if (session === undefined) return;
    await this.#withSeparateConnection(async (query) => killAll(query, await findAlive(query, [session])));
  }

  /** Whether the server is at work on what this connection asked for, or has not got it, or has answered long ago. */
  async isExecuting(connection: DriverConnection): Promise<boolean> {
    const session = this.#sessions.get(connection);
    if (session === undefined) return false;
    const listedSessions = await this.#withSeparateConnection((query) => findAlive(query, [session]));
    return listedSessions.some(({ command, state }) => command !== "Sleep" && !answeringStatePattern.test(state));
  }

  async #endSessions(sessionsToEnd: readonly ServerSession[]): Promise<void> {
    const giveUpAt = this.#runtime.monotonic() + this.#timeoutMs;
    await this.#withSeparateConnection(async (query) => {
      for (;;) {
        const remaining = await findAlive(query, sessionsToEnd);
        if (remaining.length === 0) break;
        if (this.#runtime.monotonic() > giveUpAt) {
          throw new StoreError("MySQL: the session of a lost connection does not end.", { transient: true });
        }
        await killAll(query, remaining);
        await sleep(this.#runtime, pollIntervalMs);
      }
    });
  }

  get #timeoutMs(): number {
    return Math.min(10_000, Math.max(2_000, this.#deadline.ms));
  }

  /** On a connection outside of the pools, which may be full of silent ones. It is cut off when it is silent, too. */
  async #withSeparateConnection<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const connectTimeout = this.#timeoutMs;
    const connection = await this.#driver.createConnection({ uri: this.#uri, connectTimeout });
    connection.on("error", () => {});
    const cut = () => connection.connection?.stream?.destroy();
    const cutTimer = this.#runtime.setTimeout(cut, 2 * connectTimeout);
    try {
      return await work(async (text) => (await connection.query(text))[0]);
    } finally {
      this.#runtime.clearTimeout(cutTimer);
      connection.destroy();
    }
  }
}

type Query = (text: string) => Promise<unknown>;

interface ListedSession extends ServerSession {
  readonly command: string;
  readonly state: string;
}

async function findAlive(query: Query, sessions: readonly ServerSession[]): Promise<readonly ListedSession[]> {
  const rows = parseProcessList(await query(listSessions));
  return rows.filter((row) => sessions.some(({ id, client }) => id === row.id && client === row.client));
}

const parseProcessList = (processList: unknown): readonly ListedSession[] =>
  (processList as Readonly<Record<string, unknown>>[]).map((row) => ({
    id: Number(row.Id),
    client: String(row.Host),
    command: String(row.Command),
    state: String(row.State),
  }));

async function killAll(query: Query, sessions: readonly { readonly id: number }[]): Promise<void> {
  for (const { id } of sessions) {
    await query(`KILL ${id}`).catch((error: unknown) => {
      if ((error as { errno?: number }).errno !== noSuchThreadErrno) throw error;
    });
  }
}
