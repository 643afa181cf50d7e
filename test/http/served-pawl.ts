/** Pawl on a database of the test, with a worker, served over HTTP on a free port of this machine. */
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type AnyWorkflow, type JobDefinition, type Logger, Pawl, type Worker } from "pawl";
import { type HttpHandler, type HttpOptions, httpHandler, nodeListener } from "pawl/http";
import { onTestFinished } from "vitest";
import type { Runtime } from "../../src/runtime/runtime.js";
import { systemRuntime } from "../../src/runtime/system.js";
import type { Store } from "../../src/store/contract/store.js";
import { type AnyStoreKind, chosenStore, openStore, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body, of any shape. */
  readonly json: any;
}

export interface ServedPawl {
  readonly pawl: Pawl;
  readonly worker: Worker;
  readonly url: string;
  readonly databaseUrl: string;
  readonly server: Server;
  /** The open connections of the server. */
  readonly sockets: ReadonlySet<Socket>;
  readonly handle: HttpHandler;
  get(path: string, headers?: Record<string, string>): Promise<HttpAnswer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<HttpAnswer>;
}

export interface ServedOptions extends HttpOptions {
  readonly kind?: AnyStoreKind;
  readonly jobs?: readonly JobDefinition[];
  readonly registered?: readonly AnyWorkflow[];
  readonly logger?: Logger;
  /** The database, if the test has made one. Otherwise a new one is made and dropped. */
  readonly databaseUrl?: string;
  /** The timers and clocks of the Pawl. */
  readonly runtime?: Runtime;
  /** Stands between Pawl and the store, to watch or disturb. */
  readonly wrapStore?: (store: Store) => Store;
}

export async function serve(options: ServedOptions = {}): Promise<ServedPawl> {
  const { kind = chosenStore ?? "memory", jobs = [], registered = [], logger = silent, ...rest } = options;
  const { databaseUrl, runtime = systemRuntime, wrapStore = (store: Store) => store, ...httpOptions } = rest;
  const database = databaseUrl === undefined ? await testDatabase(kind) : { url: databaseUrl, drop: async () => {} };
  const store = await openStore(kind, database.url);
  await store.migrate();
  const pawl = new Pawl(wrapStore(store), logger, { runtime });
  const worker = pawl.worker({ workflows: registered, jobs });
  await worker.start();
  const handle = httpHandler(pawl, httpOptions);
  const { server, url, sockets } = await listen(handle);
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await pawl.close();
    await database.drop();
  });
  const call = callerOf(url);
  return {
    ...{ pawl, worker, url, databaseUrl: database.url, server, sockets, handle },
    get: (path, headers) => call("GET", path, undefined, headers),
    post: (path, body = {}, headers) => call("POST", path, body, headers),
  };
}

async function listen(handle: HttpHandler): Promise<Pick<ServedPawl, "server" | "url" | "sockets">> {
  const server = createServer(nodeListener(handle));
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, sockets, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const callerOf =
  (url: string) =>
  async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, json: text === "" ? null : JSON.parse(text) };
  };

/** One of several people who use the same database, each through a server of their own. */
export interface Operator {
  readonly pawl: Pawl;
  get(path: string): Promise<HttpAnswer>;
  post(path: string, body?: unknown): Promise<HttpAnswer>;
}

/** Servers on one database, one for each user, with connections of their own. In memory they share the store. */
export async function serveUsers(kind: AnyStoreKind, users: readonly string[]): Promise<Operator[]> {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const shared = kind === "memory" ? await openStore(kind, database.url) : null;
  const operators: Operator[] = [];
  for (const user of users) {
    const store = shared ?? (await openStore(kind, database.url));
    await store.migrate();
    const pawl = new Pawl(store, silent);
    const { server, url } = await listen(httpHandler(pawl, { authorize: () => ({ user, access: "all" }) }));
    onTestFinished(async () => {
      await pawl.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const call = callerOf(url);
    operators.push({
      pawl,
      get: (path) => call("GET", path),
      post: (path, body = {}) => call("POST", path, body),
    });
  }
  return operators;
}
