/**
 * The one connection that listens. It may die at any time, with or without a word: it is asked for a sign of life now and
 * then, and comes back by itself. After every connect something may have been missed, so its first hint is "anything".
 */

import type { Runtime, Timer } from "../../../runtime/runtime.js";
import type { Hint } from "../../contract/store.js";
import type { Reach } from "../../shared/reachability.js";
import type { StatementDeadline } from "../../shared/statement-deadline.js";
import { quoteName } from "../tables.js";
import type { PgLoneClient, PgModule } from "./driver.js";
import { isConnectionLost } from "./errors.js";
import { decodeHints } from "./notifier.js";

const longestPauseMs = 5_000;

export interface ListenerOptions {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly connection: Record<string, unknown>;
  readonly channel: string;
  /** Notifications of this sender are our own. */
  readonly self: string;
  readonly emit: (hints: readonly Hint[]) => void;
  readonly reach: Reach;
  readonly deadline: StatementDeadline;
  readonly onTrouble: (what: string, error: unknown) => void;
}

export class Listener {
  readonly #options: ListenerOptions;
  readonly #runtime: Runtime;
  #client: PgLoneClient | null = null;
  #timer: Timer | undefined;
  #failures = 0;
  #heardAt = 0;
  #closed = false;
  #opening: Promise<void>;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#opening = this.#open();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#runtime.clearTimeout(this.#timer);
    await this.#opening;
    const client = this.#client;
    this.#client = null;
    if (client !== null) await endQuickly(client, this.#runtime);
  }

  async #open(): Promise<void> {
    const { pg, connection, channel, emit, reach } = this.#options;
    const { losses } = reach;
    const client = new pg.Client(connection);
    client.on("error", (error) => this.#lost(client, error));
    client.on("end", () => this.#lost(client, new Error("The listening connection was closed.")));
    client.on("notification", ({ payload }) => {
      this.#heardAt = this.#runtime.monotonic();
      emit(decodeHints(payload ?? "", this.#options.self));
    });
    this.#client = client;
    try {
      await client.connect();
      await this.#ask(client, "SET statement_timeout = 0; SET idle_session_timeout = 0").catch(() => {
        // Before version 14 there is no idle_session_timeout.
      });
      await this.#ask(client, `LISTEN ${quoteName(channel)}`);
      if (this.#closed || this.#client !== client) return;
      this.#failures = 0;
      reach.answered(losses);
      emit([{ kind: "anything" }]);
      this.#pingLater(client);
    } catch (error) {
      this.#lost(client, error);
    }
  }

  /** Asked only when nothing was heard for as long as a statement may take: the connection may swallow everything. */
  #pingLater(client: PgLoneClient): void {
    const quietMs = this.#runtime.monotonic() - this.#heardAt;
    const restMs = Math.max(0, this.#options.deadline.ms - quietMs);
    this.#timer = this.#runtime.setTimeout(() => void this.#ping(client), restMs);
    this.#timer.unref();
  }

  async #ping(client: PgLoneClient): Promise<void> {
    try {
      if (this.#runtime.monotonic() - this.#heardAt >= this.#options.deadline.ms) await this.#ask(client, "SELECT 1");
      if (this.#client === client && !this.#closed) this.#pingLater(client);
    } catch (error) {
      this.#lost(client, error);
    }
  }

  async #ask(client: PgLoneClient, text: string): Promise<void> {
    await this.#options.deadline.within(client.query({ text }), {
      isAtWork: async () => false,
      cut: (error) => this.#lost(client, error),
    });
    this.#heardAt = this.#runtime.monotonic();
  }

  /** Called once per connection that was lost, however many signs of it there are. */
  #lost(client: PgLoneClient, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#runtime.clearTimeout(this.#timer);
    client.connection?.stream?.destroy();
    if (this.#closed) return;
    if (isConnectionLost(error) || !isAnswer(error)) this.#options.reach.lost(error);
    else this.#options.onTrouble("The listening connection was lost; it will be opened again.", error);
    const pauseMs = Math.min(50 * 2 ** this.#failures, longestPauseMs) * (0.5 + this.#runtime.random());
    this.#failures += 1;
    this.#timer = this.#runtime.setTimeout(() => {
      this.#opening = this.#open();
    }, pauseMs);
    this.#timer.unref();
  }
}

/** A server that does not answer must not keep `close` waiting. */
async function endQuickly(client: PgLoneClient, runtime: Runtime): Promise<void> {
  const impatience = runtime.setTimeout(() => client.connection?.stream?.destroy(), 2_000);
  await client.end().catch(() => {});
  runtime.clearTimeout(impatience);
}

/** Whether it is the server that says so, and not its silence. */
const isAnswer = (error: unknown): boolean => typeof (error as { severity?: unknown } | null)?.severity === "string";
