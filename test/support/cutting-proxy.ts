/**
 * A TCP proxy before a database that cuts a connection at the worst moment: when a request has reached the server and been
 * carried out, and its answer has not come back. (Or, for comparison, when the request has not reached the server.)
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { until } from "./waiting.js";

export interface Cut {
  /** Texts that pass from client to server, in this order on one connection; at the last of them the rule applies. */
  readonly marks: readonly string[];
  /**
   * "answer": the request goes through and its answer is lost. "request": it never arrives. "time": nothing passes any more and
   * neither side is told; the request arrives when `deliverLate` is called.
   */
  readonly lose: "answer" | "request" | "time";
  /** For a lost answer: whether the server has done what was asked. Only then is the connection cut. */
  readonly isDone?: () => Promise<boolean>;
}

export class CuttingProxy {
  /** The server's URL, by way of the proxy. */
  readonly url: string;
  /** How many connections were cut by a rule. */
  cuts = 0;
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #rules: Cut[] = [];
  /** Connections that are open now, and what makes them swallow everything. */
  readonly #swallow = new Set<() => void>();
  readonly #late: (() => void)[] = [];

  static async open(url: string): Promise<CuttingProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new CuttingProxy(url, server);
  }

  private constructor(url: string, server: Server) {
    const target = new URL(url);
    const defaultPort = target.protocol.startsWith("postgres") ? 5432 : 3306;
    this.#target = { host: target.hostname, port: Number(target.port || defaultPort) };
    target.hostname = "127.0.0.1";
    target.port = String((server.address() as AddressInfo).port);
    this.url = target.href;
    this.#server = server;
    server.on("connection", (client) => this.#relay(client));
  }

  /** Cuts once, where the rule says. */
  cut(rule: Cut): void {
    this.#rules.push(rule);
  }

  /** The connections that are open now swallow every packet from now on, for ever and without a word. New ones work. */
  swallowOpen(): void {
    for (const swallow of this.#swallow) swallow();
  }

  /** What was held back by "time" reaches the server, whatever has become of the client. */
  deliverLate(): void {
    for (const deliver of this.#late.splice(0)) deliver();
  }

  /** Resolves once a rule has been applied: others may learn of what was done before the proxy does. */
  hasCut(): Promise<void> {
    return until(() => this.cuts === 1);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #relay(client: Socket): void {
    const server = connect(this.#target);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        // A network that swallows everything swallows this, too.
        if (isSwallowing) return;
        client.destroy();
        server.destroy();
      });
    }
    const watches = new Map<Cut, { seen: number; tail: string }>();
    let deaf = false;
    let isSwallowing = false;
    const swallow = () => {
      isSwallowing = true;
    };
    this.#swallow.add(swallow);
    client.on("data", (chunk) => {
      if (isSwallowing) return;
      const rule = this.#matching(chunk, watches);
      if (rule?.lose === "request") {
        this.cuts += 1;
        client.destroy();
        return;
      }
      if (rule?.lose === "time") {
        this.cuts += 1;
        swallow();
        this.#late.push(() => server.write(chunk));
        return;
      }
      if (rule !== undefined) {
        deaf = true;
        void this.#cutWhenDone(rule, client);
      }
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (!deaf && !isSwallowing) client.write(chunk);
    });
  }

  async #cutWhenDone(rule: Cut, client: Socket): Promise<void> {
    await until(rule.isDone ?? (() => true));
    this.cuts += 1;
    client.destroy();
  }

  /** The rule whose last mark has just passed on this connection. It is used up. */
  #matching(chunk: Buffer, watches: Map<Cut, { seen: number; tail: string }>): Cut | undefined {
    const text = chunk.toString("latin1");
    for (const rule of this.#rules) {
      const watch = watches.get(rule) ?? { seen: 0, tail: "" };
      watches.set(rule, watch);
      let rest = watch.tail + text;
      while (watch.seen < rule.marks.length) {
        const mark = rule.marks[watch.seen] as string;
        const at = rest.indexOf(mark);
        if (at === -1) break;
        rest = rest.slice(at + mark.length);
        watch.seen += 1;
      }
      // A mark may be spread over two chunks.
      watch.tail = rest.slice(-100);
      if (watch.seen < rule.marks.length) continue;
      this.#rules = this.#rules.filter((other) => other !== rule);
      return rule;
    }
    return undefined;
  }
}
