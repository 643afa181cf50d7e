/** The configuration of connections, and their sockets, which a store can destroy all at once when it closes. */
import { Socket } from "node:net";

export const connectionTimeoutMs = 10_000;

export function connectionConfig(url: string): Record<string, unknown> {
  return {
    connectionString: url,
    application_name: "pawl",
    connectionTimeoutMillis: connectionTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** All sockets that are open or connecting. */
export class Sockets {
  readonly #openSockets = new Set<Socket>();

  open(): Socket {
    const socket = new Socket();
    this.#openSockets.add(socket);
    socket.once("close", () => this.#openSockets.delete(socket));
    return socket;
  }

  destroyAll(): void {
    for (const socket of this.#openSockets) socket.destroy();
  }
}
