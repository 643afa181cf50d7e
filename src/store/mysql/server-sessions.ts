/**
 * The sessions on the server that belong to the store's connections. When the store gives up a connection, its session
 * may still be executing, have locks or be about to commit. What the session has written is certain only when it has
 * ended, so the store kills it from another connection and sends no other statement until then.
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
   * The host and port of this process as the server sees them. The id alone does not identify the session: after a
   * restart, or on another server behind the same address, another session may have the same id.
   */
  readonly client: string;
}

/**
 * Reading information_schema instead would create a temporary table on disk. `findAlive` ignores the sessions of other
 * clients.
 */
export const listSessions = "SHOW PROCESSLIST";

const pollIntervalMs = 20;
const noSuchThreadErrno = 1094;
/**
 * The states of MariaDB and MySQL in which the server has finished the statement but cannot deliver the result to the
 * client.
 */
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

  /** @param processList the result of `listSessions` on this connection */
  register(connection: DriverConnection, id: number, processList: unknown): void {
    const client = parseProcessList(processList).find((row) => row.id === id)?.client;
    if (client !== undefined) this.#sessions.set(connection, { id, client });
  }

  /** Records that a connection was given up while a statement was in flight. */
  markLost(connection: DriverConnection): void {
    const session = this.#sessions.get(connection);
    if (session !== undefined) this.#lostSessions.add(session);
  }

  get hasNoLostSessions(): boolean {
    return this.#lostSessions.haveEnded;
  }

  /** Returns when the sessions of all lost connections have ended; throws when that cannot be verified now. */
  endLostSessions(): Promise<void> {
    return this.#lostSessions.ensureEnded();
  }

  /** Kills the session of a connection; its locks are released as soon as the server has rolled back. */
  async killSession(connection: DriverConnection): Promise<void> {
    const session = this.#sessions.get(connection);
    if (session === undefined) return;
    await this.#withSeparateConnection(async (query) => killAll(query, await findAlive(query, [session])));
  }

  /**
   * Whether the server is executing a statement of this connection. False if the server never received the statement or
   * has answered it.
   */
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
          throw new StoreError("MySQL has not ended the session of a lost connection; try again.", { transient: true });
        }
        await killAll(query, remaining);
        await sleep(this.#runtime, pollIntervalMs);
      }
    });
  }

  get #timeoutMs(): number {
    return Math.min(10_000, Math.max(2_000, this.#deadline.ms));
  }

  /** Uses a connection outside of the pools, whose connections may all be broken. It has a timeout of its own. */
  async #withSeparateConnection<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const connectTimeout = this.#timeoutMs;
    const connection = await this.#driver.createConnection({ uri: this.#uri, connectTimeout });
    connection.on("error", () => {});
    const destroySocket = () => connection.connection?.stream?.destroy();
    const timeoutTimer = this.#runtime.setTimeout(destroySocket, 2 * connectTimeout);
    try {
      return await work(async (text) => (await connection.query(text))[0]);
    } finally {
      this.#runtime.clearTimeout(timeoutTimer);
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
