/**
 * A small connection pool. The pool of mysql2 hands out a connection before its session settings are confirmed, and its
 * `end` closes connections that are still in use.
 */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { StatementDeadline } from "../shared/statement-deadline.js";
import { type Capabilities, capabilitiesOf } from "./capabilities.js";
import type { Driver, DriverConnection } from "./driver.js";
import { listSessions, type ServerSessions } from "./server-sessions.js";

export interface PooledConnection {
  readonly driver: DriverConnection;
  /** The largest packet that the server accepts, in bytes. */
  readonly maxPacket: number;
  readonly capabilities: Capabilities;
  /** Sends a text. Without an answer before the deadline it closes the connection and rejects with NoAnswerError. */
  query(text: string): Promise<readonly unknown[]>;
  /** Set when the connection has failed, also while it is idle. */
  isLost: boolean;
  /** When the connection was last released, on the process's monotonic clock. */
  releasedAt: number;
}

export interface ConnectionPoolOptions {
  readonly driver: Driver;
  readonly uri: string;
  readonly runtime: Runtime;
  /** Callers beyond this number of connections wait. */
  readonly maxConnections: number;
  /** Allows several statements in one packet. Not for user code, where it would make an SQL injection worse. */
  readonly multipleStatements: boolean;
  /**
   * Seconds after which the server closes a connection without traffic, and so ends the transaction of a process that
   * was stopped or disconnected. The pool closes idle connections after half of this time.
   */
  readonly idleTimeoutSeconds: number;
  readonly deadline: StatementDeadline;
  readonly sessions: ServerSessions;
}

/**
 * READ COMMITTED, because with the default isolation level range reads lock gaps, which causes many deadlocks (253
 * instead of 2 in 5 s on MariaDB). The sql_mode replaces the server's: it is strict, and has backslash escapes, which
 * `escape` depends on. A lock that is not available within 5 s belongs to a stuck transaction; the default is to wait
 * for 50 s.
 */
const sessionSettings = (idleSeconds: number) => [
  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
  "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', " +
    `innodb_lock_wait_timeout = 5, wait_timeout = ${idleSeconds}`,
];

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #idleConnections: PooledConnection[] = [];
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
      // A lost session may still have locks, or commit a write that the caller would repeat.
      if (!this.#options.sessions.hasNoLostSessions) await this.#options.sessions.endLostSessions();
      const idleConnection = this.#idleConnections.pop();
      if (idleConnection !== undefined && !this.#isStale(idleConnection)) return idleConnection;
      if (idleConnection !== undefined) {
        this.drop(idleConnection);
        continue;
      }
      if (this.#openCount < this.#options.maxConnections) return this.#connect();
      // The waiter gets a connection, or null when a connection was closed and a new one may be opened.
      const connection = await new Promise<PooledConnection | null>((resolve) => this.#waiters.push({ resolve }));
      if (connection !== null) return connection;
    }
  }

  /** Takes back a connection that is not in a transaction. */
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
    this.#idleConnections.push(connection);
    this.#idleSweepTimer ??= runtime.setInterval(() => this.#closeStale(), idleTimeoutSeconds * 250).unref();
  }

  /** Takes back a connection that user code has used, and resets its session first. */
  async resetAndRelease(connection: PooledConnection): Promise<void> {
    try {
      await this.#withDeadline(connection.driver, connection.driver.reset());
      for (const statement of sessionSettings(this.#options.idleTimeoutSeconds)) await connection.query(statement);
      this.release(connection);
    } catch {
      this.drop(connection);
    }
  }

  /** Closes a connection that is lost or in an unknown state. */
  drop(connection: PooledConnection): void {
    connection.isLost = true;
    this.#driverConnections.delete(connection.driver);
    connection.driver.destroy();
    this.#openCount -= 1;
    this.#waiters.shift()?.resolve(null);
  }

  /**
   * Closes a connection whose session may still be executing, have locks or be about to commit. Returns when the server
   * has ended that session; if that fails now, the next `acquire` waits for it.
   */
  async dropAndEndSession(connection: PooledConnection): Promise<void> {
    this.#options.sessions.markLost(connection.driver);
    disconnect(connection.driver);
    this.drop(connection);
    if (!this.#isDisconnected) await this.#options.sessions.endLostSessions().catch(() => {});
  }

  /** Closes a connection that user code may still use. No commit is in flight, so the session's end is not awaited. */
  async dropAndKillSession(connection: PooledConnection): Promise<void> {
    disconnect(connection.driver);
    this.drop(connection);
    if (!this.#isDisconnected) await this.#options.sessions.killSession(connection.driver).catch(() => {});
  }

  /**
   * Called after one connection has not answered: the idle connections may be broken too, and new ones cost less than
   * testing them.
   */
  dropIdle(): void {
    for (const connection of this.#idleConnections.splice(0)) this.drop(connection);
  }

  /** Destroys the sockets of all connections, which rejects all calls that still wait for the server. */
  disconnectAll(): void {
    this.#isClosed = true;
    this.#isDisconnected = true;
    for (const driver of this.#driverConnections) disconnect(driver);
  }

  /** Must be called when all acquired connections have been released. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.runtime.clearInterval(this.#idleSweepTimer);
    for (const { resolve } of this.#waiters.splice(0)) resolve(null);
    const idleConnections = this.#idleConnections.splice(0);
    this.#openCount -= idleConnections.length;
    await Promise.all(idleConnections.map(({ driver }) => driver.end().catch(() => driver.destroy())));
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
      // With this flag the number of affected rows includes rows that an UPDATE found but did not change.
      flags: ["FOUND_ROWS"],
    });
    // Without a listener, an error of an idle connection, such as after a restart of the server, would end the process.
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

  /** The idle connections are a stack: the one at the bottom has been idle for longest. */
  #closeStale(): void {
    while (this.#idleConnections[0] !== undefined && this.#isStale(this.#idleConnections[0])) {
      const { driver } = this.#idleConnections.shift() as PooledConnection;
      this.#openCount -= 1;
      driver.end().catch(() => driver.destroy());
    }
    if (this.#idleConnections.length > 0) return;
    this.#options.runtime.clearInterval(this.#idleSweepTimer);
    this.#idleSweepTimer = undefined;
  }

  /** Removes a failed idle connection, so that it is not handed out again. */
  #removeIdle(driver: DriverConnection): void {
    const index = this.#idleConnections.findIndex((connection) => connection.driver === driver);
    if (index === -1) return;
    this.#idleConnections.splice(index, 1);
    this.#openCount -= 1;
    driver.destroy();
    this.#waiters.shift()?.resolve(null);
  }
}

/** Destroys the socket: pending calls are rejected, and buffered data is not sent any more. */
function disconnect({ connection }: DriverConnection): void {
  const stream = connection?.stream;
  if (stream?.resetAndDestroy !== undefined) stream.resetAndDestroy();
  else stream?.destroy();
}
