/**
 * The one connection that listens. It may die at any time, with or without a word: it is asked for a sign of life now and
 * then, and comes back by itself. After every connect something may have been missed, so its first hint is "anything".
 */
import type { Reach } from "../reach.js";
import type { Hint } from "../store.js";
import type { PgLoneClient, PgModule } from "./driver.js";
import { isConnectionLost } from "./errors.js";
import { decodeHints } from "./notifier.js";
import { quoteName } from "./tables.js";

const pingEveryMs = 30_000;
const pingTimeoutMs = 10_000;
const longestPauseMs = 5_000;

export interface ListenerOptions {
  readonly pg: PgModule;
  readonly connection: Record<string, unknown>;
  readonly channel: string;
  /** Notifications of this sender are our own. */
  readonly self: string;
  readonly emit: (hints: readonly Hint[]) => void;
  readonly reach: Reach;
  readonly onTrouble: (what: string, error: unknown) => void;
}

export class Listener {
  readonly #options: ListenerOptions;
  #client: PgLoneClient | null = null;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #closed = false;
  #opening: Promise<void>;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#opening = this.#open();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#opening;
    const client = this.#client;
    this.#client = null;
    if (client !== null) await endQuickly(client);
  }

  async #open(): Promise<void> {
    const { pg, connection, channel, emit, reach } = this.#options;
    const { losses } = reach;
    const client = new pg.Client(connection);
    client.on("error", (error) => this.#lost(client, error));
    client.on("end", () => this.#lost(client, new Error("The listening connection was closed.")));
    client.on("notification", ({ payload }) => emit(decodeHints(payload ?? "", this.#options.self)));
    this.#client = client;
    try {
      await client.connect();
      await client.query({ text: "SET statement_timeout = 0; SET idle_session_timeout = 0" }).catch(() => {
        // Before version 14 there is no idle_session_timeout.
      });
      await client.query({ text: `LISTEN ${quoteName(channel)}` });
      if (this.#closed || this.#client !== client) return;
      this.#failures = 0;
      reach.answered(losses);
      emit([{ kind: "anything" }]);
      this.#pingLater(client);
    } catch (error) {
      this.#lost(client, error);
    }
  }

  #pingLater(client: PgLoneClient): void {
    this.#timer = setTimeout(() => void this.#ping(client), pingEveryMs);
    this.#timer.unref();
  }

  async #ping(client: PgLoneClient): Promise<void> {
    const silence = setTimeout(
      () => this.#lost(client, new Error("The listening connection is silent.")),
      pingTimeoutMs,
    );
    silence.unref();
    try {
      await client.query({ text: "SELECT 1" });
      if (this.#client === client && !this.#closed) this.#pingLater(client);
    } catch (error) {
      this.#lost(client, error);
    } finally {
      clearTimeout(silence);
    }
  }

  /** Called once per connection that was lost, however many signs of it there are. */
  #lost(client: PgLoneClient, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = null;
    clearTimeout(this.#timer);
    client.connection?.stream?.destroy();
    if (this.#closed) return;
    if (isConnectionLost(error) || !isAnswer(error)) this.#options.reach.lost(error);
    else this.#options.onTrouble("The listening connection was lost; it will be opened again.", error);
    const pauseMs = Math.min(50 * 2 ** this.#failures, longestPauseMs) * (0.5 + Math.random());
    this.#failures += 1;
    this.#timer = setTimeout(() => {
      this.#opening = this.#open();
    }, pauseMs);
    this.#timer.unref();
  }
}

/** A server that does not answer must not keep `close` waiting. */
async function endQuickly(client: PgLoneClient): Promise<void> {
  const impatience = setTimeout(() => client.connection?.stream?.destroy(), 2_000);
  await client.end().catch(() => {});
  clearTimeout(impatience);
}

/** Whether it is the server that says so, and not its silence. */
const isAnswer = (error: unknown): boolean => typeof (error as { severity?: unknown } | null)?.severity === "string";
