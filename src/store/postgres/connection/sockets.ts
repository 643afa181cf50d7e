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
  readonly #open = new Set<Socket>();

  open(): Socket {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    return socket;
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
