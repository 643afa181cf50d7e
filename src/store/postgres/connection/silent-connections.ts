/** Connections that swallow everything: no answer comes, and no error either. */
import type { Runtime } from "../../../runtime/runtime.js";
import type { PgClient, PgPool, PgPoolClient } from "./driver.js";

export class SilentConnections {
  readonly #runtime: Runtime;
  /** When a connection was last found to be silent, and when each was opened. */
  #lastSilenceAt = Number.NEGATIVE_INFINITY;
  readonly #openedAt = new WeakMap<PgClient, number>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  recordOpened(client: PgClient): void {
    this.#openedAt.set(client, this.#runtime.monotonic());
  }

  /** This one is silent, and is dropped. */
  markSilent(client: PgClient): void {
    this.#lastSilenceAt = this.#runtime.monotonic();
    destroySocket(client);
  }

  /** Where one connection swallows everything, others that were open at the time do so, too: they are not even tried. */
  async connect(pool: PgPool): Promise<PgPoolClient> {
    for (;;) {
      const client = await pool.connect();
      if ((this.#openedAt.get(client) ?? 0) > this.#lastSilenceAt) return client;
      destroySocket(client);
      client.release(true);
    }
  }
}

/** Without a word to the server, which may not be there any more. */
export function destroySocket(client: PgClient): void {
  client.connection?.stream?.destroy();
}
