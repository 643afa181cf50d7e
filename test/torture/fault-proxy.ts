/**
 * A TCP proxy in front of a database that injects network faults: it cuts connections, stalls them, half-closes them,
 * loses the answer to a commit that was carried out, and swallows every packet for ever.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Requests that commit something: MySQL sends the word, PostgreSQL the name of a prepared statement or the word. */
const commitMarks = /COMMIT|pawl_(worker|client)_/;
const halfCloseMs = 10_000;
const keepaliveMs = 45_000;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  isSwallowed: boolean;
  /** No further answer of the server is forwarded; the connection is cut at its next packet. */
  isDeaf: boolean;
}

export class FaultProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<Pair>();
  /** Clients of swallowed connections whose server side is closed. */
  readonly #abandoned = new Set<Socket>();
  #onCommit: ((pair: Pair) => void) | null = null;
  #isStalled = false;

  static async open(url: string): Promise<FaultProxy> {
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new FaultProxy(url, server);
  }

  private constructor(url: string, server: Server) {
    const target = new URL(url);
    this.#target = { host: target.hostname, port: Number(target.port) };
    target.hostname = "127.0.0.1";
    target.port = String((server.address() as AddressInfo).port);
    this.url = target.href;
    this.#server = server;
    server.on("connection", (client) => this.#relay(client));
  }

  /** How many connections work. */
  get open(): number {
    return [...this.#pairs].filter(({ isSwallowed }) => !isSwallowed).length;
  }

  cut(): number {
    return this.#each((pair) => destroy(pair));
  }

  /**
   * From now on both ends of these connections receive nothing from each other, not even that they close. New
   * connections work.
   */
  swallow(): number {
    return this.#each((pair) => {
      pair.isSwallowed = true;
    });
  }

  /** One direction ends while the other stays open for a while, as with a half-closed peer. */
  halfClose(direction: "client" | "server"): number {
    return this.#each((pair) => {
      pair[direction].end();
      setTimeout(() => destroy(pair), halfCloseMs).unref();
    });
  }

  /** Packets are held for this long, including those of new connections. */
  stall(ms: number): number {
    this.#isStalled = true;
    const count = this.#each(pause);
    setTimeout(() => {
      this.#isStalled = false;
      for (const { client, server } of this.#pairs) {
        client.resume();
        server.resume();
      }
    }, ms);
    return count;
  }

  /**
   * Cuts the connection on which the next commit is sent, once the server has answered. False when no commit came in
   * time.
   */
  loseAnswerToCommit(withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#onCommit = null;
        resolve(false);
      }, withinMs);
      this.#onCommit = (pair) => {
        clearTimeout(timer);
        this.#onCommit = null;
        pair.isDeaf = true;
        resolve(true);
      };
    });
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) destroy(pair);
    for (const socket of this.#abandoned) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #each(hit: (pair: Pair) => void): number {
    const pairs = [...this.#pairs].filter(({ isSwallowed }) => !isSwallowed);
    for (const pair of pairs) hit(pair);
    return pairs.length;
  }

  #relay(client: Socket): void {
    const server = connect({ ...this.#target, allowHalfOpen: true });
    const pair: Pair = { client, server, isSwallowed: false, isDeaf: false };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", () => {});
      from.on("end", () => {
        if (!pair.isSwallowed) to.end();
      });
      from.on("close", () => {
        this.#pairs.delete(pair);
        if (!pair.isSwallowed) to.destroy();
        // A server learns late that its client is gone, when keepalive packets stay unanswered. The client never learns
        // it.
        else if (from === client) setTimeout(() => to.destroy(), keepaliveMs).unref();
        else this.#abandoned.add(to);
      });
    }
    client.on("data", (chunk) => {
      if (pair.isSwallowed) return;
      if (this.#onCommit !== null && commitMarks.test(chunk.toString("latin1"))) this.#onCommit(pair);
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (pair.isSwallowed) return;
      if (pair.isDeaf) return destroy(pair);
      client.write(chunk);
    });
    if (this.#isStalled) pause(pair);
  }
}

function destroy({ client, server }: Pair): void {
  client.destroy();
  server.destroy();
}

function pause({ client, server }: Pair): void {
  client.pause();
  server.pause();
}
