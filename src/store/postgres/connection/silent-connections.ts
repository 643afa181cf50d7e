/** Connections on which neither an answer nor an error arrives. */
import type { Runtime } from "../../../runtime/runtime.js";
import type { PgClient, PgPool, PgPoolClient } from "./driver.js";

export class SilentConnections {
  readonly #runtime: Runtime;
  /** When a connection last turned out to be silent. */
  #lastSilenceAt = Number.NEGATIVE_INFINITY;
  readonly #openedAt = new WeakMap<PgClient, number>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  recordOpened(client: PgClient): void {
    this.#openedAt.set(client, this.#runtime.monotonic());
  }

  /** Records that the connection is silent, and drops it. */
  markSilent(client: PgClient): void {
    this.#lastSilenceAt = this.#runtime.monotonic();
    destroySocket(client);
  }

  /** Skips connections that were opened before the last silent one was found, because they are probably silent, too. */
  async connect(pool: PgPool): Promise<PgPoolClient> {
    for (;;) {
      const client = await pool.connect();
      if ((this.#openedAt.get(client) ?? 0) > this.#lastSilenceAt) return client;
      destroySocket(client);
      client.release(true);
    }
  }
}

/** Closes the socket without notifying the server, which may not be reachable any more. */
export function destroySocket(client: PgClient): void {
  client.connection?.stream?.destroy();
}
