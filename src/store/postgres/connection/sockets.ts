/** How connections are opened, and the sockets beneath them, which a store that is cut off destroys. */
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

/** All that are open, or about to be. */
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
