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

export interface Connection {
  readonly driver: DriverConnection;
  /** The largest packet the server takes, in bytes. */
  readonly maxPacket: number;
  readonly capabilities: Capabilities;
  /** Sends a text. Silence beyond the deadline is an error (NoAnswerError), and cuts the connection off. */
  ask(text: string): Promise<readonly unknown[]>;
  /** Set when the connection died while nobody used it. */
  lost: boolean;
  /** When it was last given back, on this process's steady clock. */
  freeSince: number;
}

export interface ConnectionsOptions {
  readonly driver: Driver;
  readonly uri: string;
  readonly runtime: Runtime;
  /** At most so many at a time; more callers wait. */
  readonly limit: number;
  /** Several statements in one packet. Only for our own use: in user code it would make an injection worse. */
  readonly multipleStatements: boolean;
  /**
   * Seconds after which the server closes a silent connection, and with it a transaction that its process (stopped,
   * unplugged) has abandoned. We close free connections ourselves at half of it.
   */
  readonly idleSeconds: number;
  readonly deadline: StatementDeadline;
  readonly sessions: ServerSessions;
}

/**
 * READ COMMITTED: with the default isolation range reads lock gaps, and batches drown in deadlocks (253 against 2 in 5 s
 * on MariaDB). The sql_mode is ours whatever the server's is: strict, and with backslash escapes, on which `escape`
 * depends. A lock that is not to be had in 5 s is somebody's stuck transaction; the default would wait for 50.
 */
const settings = (idleSeconds: number) => [
  "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
  "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', " +
    `innodb_lock_wait_timeout = 5, wait_timeout = ${idleSeconds}`,
];

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #free: Connection[] = [];
  readonly #all = new Set<DriverConnection>();
  readonly #waiting: { resolve(connection: Connection | null): void }[] = [];
  #open = 0;
  #closed = false;
  #isCutOff = false;
  #sweeper: Timer | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  async take(): Promise<Connection> {
    for (;;) {
      if (this.#closed) throw new StoreError("The store is closed.", { transient: false });
      // A session that was given up may hold locks, or commit something that would be repeated.
      if (!this.#options.sessions.isClear) await this.#options.sessions.clear();
      const free = this.#free.pop();
      if (free !== undefined && !this.#isStale(free)) return free;
      if (free !== undefined) {
        this.drop(free);
        continue;
      }
      if (this.#open < this.#options.limit) return this.#connect();
      // Given a connection, or null: a place has become free, look again.
      const given = await new Promise<Connection | null>((resolve) => this.#waiting.push({ resolve }));
      if (given !== null) return given;
    }
  }

  /** Takes back a connection that is in no transaction. */
  give(connection: Connection): void {
    if (connection.lost || this.#closed) {
      this.drop(connection);
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next.resolve(connection);
      return;
    }
    const { runtime, idleSeconds } = this.#options;
    connection.freeSince = runtime.monotonic();
    this.#free.push(connection);
    this.#sweeper ??= runtime.setInterval(() => this.#sweep(), idleSeconds * 250).unref();
  }

  /** Takes back a connection that somebody else has used: nothing that was set there is left. */
  async giveReset(connection: Connection): Promise<void> {
    try {
      await this.#within(connection.driver, connection.driver.reset());
      for (const statement of settings(this.#options.idleSeconds)) await connection.ask(statement);
      this.give(connection);
    } catch {
      this.drop(connection);
    }
  }

  /** Throws a connection away: it is lost, or in a state that nobody knows. */
  drop(connection: Connection): void {
    connection.lost = true;
    this.#all.delete(connection.driver);
    connection.driver.destroy();
    this.#open -= 1;
    this.#waiting.shift()?.resolve(null);
  }

  /**
   * Throws a connection away whose session may still be at work, hold locks or be about to commit. Returns when it is gone
   * from the server; when that cannot be done now, the next who takes a connection waits for it.
   */
  async giveUp(connection: Connection): Promise<void> {
    this.#options.sessions.lost(connection.driver);
    cutOff(connection.driver);
    this.drop(connection);
    if (!this.#isCutOff) await this.#options.sessions.clear().catch(() => {});
  }

  /** Throws away a connection that user code may still be using. No commit is under way there, so its end is not awaited. */
  async discard(connection: Connection): Promise<void> {
    cutOff(connection.driver);
    this.drop(connection);
    if (!this.#isCutOff) await this.#options.sessions.kill(connection.driver).catch(() => {});
  }

  /** After one connection has been silent, those that are free may be so, too. New ones cost less than to find out. */
  dropFree(): void {
    for (const connection of this.#free.splice(0)) this.drop(connection);
  }

  /** Whoever is still waiting for the server is told that it has gone. */
  cutOff(): void {
    this.#closed = true;
    this.#isCutOff = true;
    for (const driver of this.#all) cutOff(driver);
  }

  /** Everything that was taken has been given back by now. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#options.runtime.clearInterval(this.#sweeper);
    for (const { resolve } of this.#waiting.splice(0)) resolve(null);
    const free = this.#free.splice(0);
    this.#open -= free.length;
    await Promise.all(free.map(({ driver }) => driver.end().catch(() => driver.destroy())));
  }

  async #connect(): Promise<Connection> {
    this.#open += 1;
    try {
      return await this.#connected();
    } catch (error) {
      this.#open -= 1;
      this.#waiting.shift()?.resolve(null);
      throw error;
    }
  }

  async #connected(): Promise<Connection> {
    const { driver, uri, multipleStatements, idleSeconds, sessions, deadline } = this.#options;
    const opened = await driver.createConnection({
      uri,
      multipleStatements,
      connectTimeout: Math.min(10_000, Math.max(2_000, deadline.ms)),
      charset: "UTF8MB4_UNICODE_CI",
      // Affected rows are those found, also where an UPDATE changes nothing.
      flags: ["FOUND_ROWS"],
    });
    // Without listeners an error of an idle connection (the server was restarted) would end the process.
    const state = { lost: false, freeSince: 0 };
    this.#all.add(opened);
    const onLost = () => {
      state.lost = true;
      this.#all.delete(opened);
      this.#forget(opened);
    };
    opened.on("error", onLost);
    opened.on("end", onLost);
    const ask = (text: string) => this.#within(opened, opened.query(text));
    try {
      for (const statement of settings(idleSeconds)) await ask(statement);
      const [listed] = await ask(listSessions);
      const [rows] = await ask("SELECT @@max_allowed_packet AS bytes, VERSION() AS version, CONNECTION_ID() AS id");
      const [row] = rows as [{ bytes: number; version: string; id: number }];
      sessions.opened(opened, Number(row.id), listed);
      const capabilities = capabilitiesOf(row.version);
      return Object.assign(state, { driver: opened, maxPacket: Number(row.bytes), capabilities, ask });
    } catch (error) {
      opened.destroy();
      throw error;
    }
  }

  #within<T>(driver: DriverConnection, call: Promise<T>): Promise<T> {
    const { deadline, sessions } = this.#options;
    return deadline.within(call, { isAtWork: () => sessions.isAtWork(driver), cut: () => cutOff(driver) });
  }

  #isStale({ freeSince }: Connection): boolean {
    const { runtime, idleSeconds } = this.#options;
    return runtime.monotonic() - freeSince > idleSeconds * 500;
  }

  /** The free ones are a stack: those at the bottom have been idle for longest. */
  #sweep(): void {
    while (this.#free[0] !== undefined && this.#isStale(this.#free[0])) {
      const { driver } = this.#free.shift() as Connection;
      this.#open -= 1;
      driver.end().catch(() => driver.destroy());
    }
    if (this.#free.length > 0) return;
    this.#options.runtime.clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  /** A free connection that died is not handed out again. */
  #forget(driver: DriverConnection): void {
    const index = this.#free.findIndex((connection) => connection.driver === driver);
    if (index === -1) return;
    this.#free.splice(index, 1);
    this.#open -= 1;
    driver.destroy();
    this.#waiting.shift()?.resolve(null);
  }
}

/** Callers that wait for an answer are told that it will not come. Nothing that is still to be sent is sent. */
function cutOff({ connection }: DriverConnection): void {
  const stream = connection?.stream;
  if (stream?.resetAndDestroy !== undefined) stream.resetAndDestroy();
  else stream?.destroy();
}
