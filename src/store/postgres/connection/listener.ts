/**
 * The one connection that listens for notifications. It may be lost at any time, with or without an error, so it is
 * pinged when it is idle and reconnects by itself. Notifications may have been missed while it was not connected, so
 * the first hint after each connect is "anything".
 */

import type { Runtime, Timer } from "../../../runtime/runtime.js";
import type { Hint } from "../../contract/store.js";
import type { ServerReachability } from "../../shared/reachability.js";
import type { StatementDeadline } from "../../shared/statement-deadline.js";
import { quoteName } from "../tables.js";
import type { PgModule, PgStandaloneClient } from "./driver.js";
import { isConnectionLost } from "./errors.js";
import { decodeHints } from "./notifier.js";

const maxReconnectDelayMs = 5_000;

export interface ListenerOptions {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly connection: Record<string, unknown>;
  readonly channel: string;
  /** Notifications with this sender come from this process and are ignored. */
  readonly ownSenderId: string;
  readonly emit: (hints: readonly Hint[]) => void;
  readonly reachability: ServerReachability;
  readonly deadline: StatementDeadline;
  readonly onWarning: (message: string, error: unknown) => void;
}

export class Listener {
  readonly #options: ListenerOptions;
  readonly #runtime: Runtime;
  #client: PgStandaloneClient | null = null;
  #timer: Timer | undefined;
  #failureCount = 0;
  #lastActivityAt = 0;
  #isClosed = false;
  #opening: Promise<void>;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#opening = this.#open();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#runtime.clearTimeout(this.#timer);
    await this.#opening;
    const client = this.#client;
    this.#client = null;
    if (client !== null) await endWithTimeout(client, this.#runtime);
  }

  async #open(): Promise<void> {
    const { pg, connection, channel, emit, reachability } = this.#options;
    const { failureCount } = reachability;
    const client = new pg.Client(connection);
    client.on("error", (error) => this.#handleConnectionLoss(client, error));
    client.on("end", () => this.#handleConnectionLoss(client, new Error("The listening connection was closed.")));
    client.on("notification", ({ payload }) => {
      this.#lastActivityAt = this.#runtime.monotonic();
      emit(decodeHints(payload ?? "", this.#options.ownSenderId));
    });
    this.#client = client;
    try {
      await client.connect();
      await this.#sendQuery(client, "SET statement_timeout = 0; SET idle_session_timeout = 0").catch(() => {
        // PostgreSQL before version 14 has no idle_session_timeout.
      });
      await this.#sendQuery(client, `LISTEN ${quoteName(channel)}`);
      if (this.#isClosed || this.#client !== client) return;
      this.#failureCount = 0;
      reachability.recordAnswer(failureCount);
      emit([{ kind: "anything" }]);
      this.#schedulePing(client);
    } catch (error) {
      this.#handleConnectionLoss(client, error);
    }
  }

  /** Pings a connection after it was idle for the time of the deadline: it may be lost without an error. */
  #schedulePing(client: PgStandaloneClient): void {
    const idleMs = this.#runtime.monotonic() - this.#lastActivityAt;
    const remainingMs = Math.max(0, this.#options.deadline.ms - idleMs);
    this.#timer = this.#runtime.setTimeout(() => void this.#ping(client), remainingMs);
    this.#timer.unref();
  }

  async #ping(client: PgStandaloneClient): Promise<void> {
    try {
      if (this.#runtime.monotonic() - this.#lastActivityAt >= this.#options.deadline.ms)
        await this.#sendQuery(client, "SELECT 1");
      if (this.#client === client && !this.#isClosed) this.#schedulePing(client);
    } catch (error) {
      this.#handleConnectionLoss(client, error);
    }
  }

  async #sendQuery(client: PgStandaloneClient, text: string): Promise<void> {
    await this.#options.deadline.within(client.query({ text }), {
      isExecuting: async () => false,
      dropConnection: (error) => this.#handleConnectionLoss(client, error),
    });
    this.#lastActivityAt = this.#runtime.monotonic();
  }

  /** Acts only once per lost connection, although several events may report the loss. */
  #handleConnectionLoss(client: PgStandaloneClient, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#runtime.clearTimeout(this.#timer);
    client.connection?.stream?.destroy();
    if (this.#isClosed) return;
    if (isConnectionLost(error) || !isServerError(error)) this.#options.reachability.recordFailure(error);
    else this.#options.onWarning("The listening connection was lost; it will be opened again.", error);
    const reconnectDelayMs =
      Math.min(50 * 2 ** this.#failureCount, maxReconnectDelayMs) * (0.5 + this.#runtime.random());
    this.#failureCount += 1;
    this.#timer = this.#runtime.setTimeout(() => {
      this.#opening = this.#open();
    }, reconnectDelayMs);
    this.#timer.unref();
  }
}

/** A server that does not answer must not keep `close` waiting. */
async function endWithTimeout(client: PgStandaloneClient, runtime: Runtime): Promise<void> {
  const closeTimer = runtime.setTimeout(() => client.connection?.stream?.destroy(), 2_000);
  await client.end().catch(() => {});
  runtime.clearTimeout(closeTimer);
}

/** Whether the server sent this error, as opposed to an error of the connection. */
const isServerError = (error: unknown): boolean =>
  typeof (error as { severity?: unknown } | null)?.severity === "string";
