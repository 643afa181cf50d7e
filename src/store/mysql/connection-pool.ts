/**
 * A small pool. mysql2 has one, but it hands out a connection before its settings are known to hold, and at the end it
 * cuts off what is still open; both matter more here than features.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { StatementDeadline } from "../shared/statement-deadline.js";
import { type Capabilities, capabilitiesOf } from "./capabilities.js";
import type { Driver, DriverConnection } from "./driver.js";
import { listSessions, type ServerSessions } from "./server-sessions.js";

export interface PooledConnection {
  readonly driver: DriverConnection;
  /** The largest packet the server takes, in bytes. */
  readonly maxPacket: number;
  readonly capabilities: Capabilities;
  /** Sends a text. Silence beyond the deadline is an error (NoAnswerError), and cuts the connection off. */
  query(text: string): Promise<readonly unknown[]>;
  /** Set when the connection died while nobody used it. */
  isLost: boolean;
  /** When it was last given back, on this process's steady clock. */
  releasedAt: number;
}

export interface ConnectionPoolOptions {
  readonly driver: Driver;
  readonly uri: string;
  readonly runtime: Runtime;
  /** At most so many at a time; more callers wait. */
  readonly maxConnections: number;
  /** Several statements in one packet. Only for our own use: in user code it would make an injection worse. */
  readonly multipleStatements: boolean;
  /**
   * Seconds after which the server closes a silent connection, and with it a transaction that its process (stopped,
   * unplugged) has abandoned. We close free connections ourselves at half of it.
   */
  readonly idleTimeoutSeconds: number;
  readonly deadline: StatementDeadline;
  readonly sessions: ServerSessions;
}

/**
 * READ COMMITTED: with the default isolation range reads lock gaps, and batches drown in deadlocks (253 against 2 in 5 s
 * on MariaDB). The sql_mode is ours whatever the server's is: strict, and with backslash escapes, on which `escape`
 * depends. A lock that is not to be had in 5 s is somebody's stuck transaction; the default would wait for 50.
 */
const sessionSettings = (idleSeconds: number) => [
  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
  "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', " +
    `innodb_lock_wait_timeout = 5, wait_timeout = ${idleSeconds}`,
];

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #idle: PooledConnection[] = [];
  readonly #driverConnections = new Set<DriverConnection>();
  readonly #waiters: { resolve(connection: PooledConnection | null): void }[] = [];
  #openCount = 0;
  #isClosed = false;
  #isDisconnected = false;
  #idleSweepTimer: Timer | undefined;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  async acquire(): Promise<PooledConnection> {
    for (;;) {
      if (this.#isClosed) throw new StoreError("The store is closed.", { transient: false });
      // A session that was given up may hold locks, or commit something that would be repeated.
      if (!this.#options.sessions.hasNoLostSessions) await this.#options.sessions.endLostSessions();
      const idle = this.#idle.pop();
      if (idle !== undefined && !this.#isStale(idle)) return idle;
      if (idle !== undefined) {
        this.drop(idle);
        continue;
      }
      if (this.#openCount < this.#options.maxConnections) return this.#connect();
      // Given a connection, or null: a place has become free, look again.
      const connection = await new Promise<PooledConnection | null>((resolve) => this.#waiters.push({ resolve }));
      if (connection !== null) return connection;
    }
  }

  /** Takes back a connection that is in no transaction. */
  release(connection: PooledConnection): void {
    if (connection.isLost || this.#isClosed) {
      this.drop(connection);
      return;
    }
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      waiter.resolve(connection);
      return;
    }
    const { runtime, idleTimeoutSeconds } = this.#options;
    connection.releasedAt = runtime.monotonic();
    this.#idle.push(connection);
    this.#idleSweepTimer ??= runtime.setInterval(() => this.#closeStale(), idleTimeoutSeconds * 250).unref();
  }

  /** Takes back a connection that somebody else has used: nothing that was set there is left. */
  async resetAndRelease(connection: PooledConnection): Promise<void> {
    try {
      await this.#withDeadline(connection.driver, connection.driver.reset());
      for (const statement of sessionSettings(this.#options.idleTimeoutSeconds)) await connection.query(statement);
      this.release(connection);
    } catch {
      this.drop(connection);
    }
  }

  /** Throws a connection away: it is lost, or in a state that nobody knows. */
  drop(connection: PooledConnection): void {
    connection.isLost = true;
    this.#driverConnections.delete(connection.driver);
    connection.driver.destroy();
    this.#openCount -= 1;
    this.#waiters.shift()?.resolve(null);
  }

  /**
   * Throws a connection away whose session may still be at work, hold locks or be about to commit. Returns when it is gone
   * from the server; when that cannot be done now, the next who takes a connection waits for it.
   */
  async dropAndEndSession(connection: PooledConnection): Promise<void> {
    this.#options.sessions.markLost(connection.driver);
    disconnect(connection.driver);
    this.drop(connection);
    if (!this.#isDisconnected) await this.#options.sessions.endLostSessions().catch(() => {});
  }

  /** Throws away a connection that user code may still be using. No commit is under way there, so its end is not awaited. */
  async dropAndKillSession(connection: PooledConnection): Promise<void> {
    disconnect(connection.driver);
    this.drop(connection);
    if (!this.#isDisconnected) await this.#options.sessions.killSession(connection.driver).catch(() => {});
  }

  /** After one connection has been silent, those that are free may be so, too. New ones cost less than to find out. */
  dropIdle(): void {
    for (const connection of this.#idle.splice(0)) this.drop(connection);
  }

  /** Whoever is still waiting for the server is told that it has gone. */
  disconnectAll(): void {
    this.#isClosed = true;
    this.#isDisconnected = true;
    for (const driver of this.#driverConnections) disconnect(driver);
  }

  /** Everything that was taken has been given back by now. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.runtime.clearInterval(this.#idleSweepTimer);
    for (const { resolve } of this.#waiters.splice(0)) resolve(null);
    const free = this.#idle.splice(0);
    this.#openCount -= free.length;
    await Promise.all(free.map(({ driver }) => driver.end().catch(() => driver.destroy())));
  }

  async #connect(): Promise<PooledConnection> {
    this.#openCount += 1;
    try {
      return await this.#openConnection();
    } catch (error) {
      this.#openCount -= 1;
      this.#waiters.shift()?.resolve(null);
      throw error;
    }
  }

  async #openConnection(): Promise<PooledConnection> {
    const { driver, uri, multipleStatements, idleTimeoutSeconds, sessions, deadline } = this.#options;
    const driverConnection = await driver.createConnection({
      uri,
      multipleStatements,
      connectTimeout: Math.min(10_000, Math.max(2_000, deadline.ms)),
      charset: "UTF8MB4_UNICODE_CI",
      // Affected rows are those found, also where an UPDATE changes nothing.
      flags: ["FOUND_ROWS"],
    });
    // Without listeners an error of an idle connection (the server was restarted) would end the process.
    const state = { isLost: false, releasedAt: 0 };
    this.#driverConnections.add(driverConnection);
    const onLost = () => {
      state.isLost = true;
      this.#driverConnections.delete(driverConnection);
      this.#removeIdle(driverConnection);
    };
    driverConnection.on("error", onLost);
    driverConnection.on("end", onLost);
    const query = (text: string) => this.#withDeadline(driverConnection, driverConnection.query(text));
    try {
      for (const statement of sessionSettings(idleTimeoutSeconds)) await query(statement);
      const [processList] = await query(listSessions);
      const [rows] = await query("SELECT @@max_allowed_packet AS bytes, VERSION() AS version, CONNECTION_ID() AS id");
      const [row] = rows as [{ bytes: number; version: string; id: number }];
      sessions.register(driverConnection, Number(row.id), processList);
      const capabilities = capabilitiesOf(row.version);
      return Object.assign(state, { driver: driverConnection, maxPacket: Number(row.bytes), capabilities, query });
    } catch (error) {
      driverConnection.destroy();
      throw error;
    }
  }

  #withDeadline<T>(driver: DriverConnection, call: Promise<T>): Promise<T> {
    const { deadline, sessions } = this.#options;
    return deadline.within(call, {
      isExecuting: () => sessions.isExecuting(driver),
      dropConnection: () => disconnect(driver),
    });
  }

  #isStale({ releasedAt }: PooledConnection): boolean {
    const { runtime, idleTimeoutSeconds } = this.#options;
    return runtime.monotonic() - releasedAt > idleTimeoutSeconds * 500;
  }

  /** The free ones are a stack: those at the bottom have been idle for longest. */
  #closeStale(): void {
    while (this.#idle[0] !== undefined && this.#isStale(this.#idle[0])) {
      const { driver } = this.#idle.shift() as PooledConnection;
      this.#openCount -= 1;
      driver.end().catch(() => driver.destroy());
    }
    if (this.#idle.length > 0) return;
    this.#options.runtime.clearInterval(this.#idleSweepTimer);
    this.#idleSweepTimer = undefined;
  }

  /** A free connection that died is not handed out again. */
  #removeIdle(driver: DriverConnection): void {
    const index = this.#idle.findIndex((connection) => connection.driver === driver);
    if (index === -1) return;
    this.#idle.splice(index, 1);
    this.#openCount -= 1;
    driver.destroy();
    this.#waiters.shift()?.resolve(null);
  }
}

/** Callers that wait for an answer are told that it will not come. Nothing that is still to be sent is sent. */
function disconnect({ connection }: DriverConnection): void {
  const stream = connection?.stream;
  if (stream?.resetAndDestroy !== undefined) stream.resetAndDestroy();
  else stream?.destroy();
}
