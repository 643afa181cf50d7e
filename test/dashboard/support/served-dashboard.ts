/** The dashboard of a Pawl on a database of the test, served on a free port of this machine. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type AnyWorkflow, type JobDefinition, Pawl, type WorkerOptions } from "pawl";
import { type HttpOptions, httpHandler, nodeListener } from "pawl/http";
import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { type AnyStoreKind, openStore, testDatabase } from "../../support/databases.js";
import { silent } from "../../support/virtual-worlds.js";
import { openPage, type PageOptions } from "./watched-page.js";

export interface DashboardTestOptions extends HttpOptions {
  readonly kind?: AnyStoreKind;
  /** The name of the application, to which the schedules of its worker belong. */
  readonly app?: string;
  readonly registered?: readonly AnyWorkflow[];
  readonly jobs?: readonly JobDefinition[];
  readonly worker?: Partial<WorkerOptions>;
  /** Whether a worker executes runs. Default true, if there are workflows. */
  readonly hasWorker?: boolean;
  /** Called when the work of the test, or of all tests that share it, is over. Default: with the test. */
  readonly onEnd?: (cleanUp: () => Promise<void>) => void;
}

export interface ServedDashboard {
  readonly pawl: Pawl;
  readonly databaseUrl: string;
  /** Without a slash at its end. */
  readonly url: string;
  /** The paths of the requests for which the server holds a stream open. */
  readonly openStreams: ReadonlySet<string>;
  /** Opens a path in a new page. */
  open(path?: string, options?: PageOptions): Promise<Page>;
  /** Ends all connections and refuses new ones, as when the process is gone. */
  close(): Promise<void>;
  /** Serves again, at the same address. */
  reopen(): Promise<void>;
}

export async function serveDashboard(options: DashboardTestOptions = {}): Promise<ServedDashboard> {
  const { kind = "sqlite", app, registered = [], jobs = [], hasWorker, worker: workerOptions = {}, ...rest } = options;
  const { onEnd = onTestFinished, ...httpOptions } = rest;
  const database = await testDatabase(kind);
  onEnd(() => database.drop());
  const store = await openStore(kind, database.url);
  await store.migrate();
  const pawl = new Pawl(store, silent, app === undefined ? {} : { app });
  onEnd(() => pawl.close());
  if (hasWorker ?? registered.length + jobs.length > 0)
    await pawl.worker({ name: "worker-1", lease: "1 minute", ...workerOptions, workflows: registered, jobs }).start();
  const handle = nodeListener(httpHandler(pawl, { dashboard: true, ...httpOptions }));
  const { openStreams, listener } = watchStreams(handle);
  const listening = new Listening(createServer(listener));
  await listening.open();
  onEnd(() => listening.close());
  const url = `http://127.0.0.1:${listening.port}${httpOptions.basePath ?? ""}`;
  return {
    ...{ pawl, databaseUrl: database.url, url, openStreams },
    open: async (path = "/", pageOptions = {}) => (await openPage(url + path, pageOptions)).page,
    close: () => listening.close(),
    reopen: () => listening.open(),
  };
}

/** A server that keeps its port when it is closed and opened again. */
class Listening {
  port = 0;
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

function watchStreams(listener: Listener): { readonly openStreams: Set<string>; readonly listener: Listener } {
  const openStreams = new Set<string>();
  let count = 0;
  return {
    openStreams,
    listener: (request, response) => {
      if (/\/(changes|events)(\?|$)/.test(request.url ?? "")) {
        const stream = `${request.url}#${(count += 1)}`;
        openStreams.add(stream);
        response.once("close", () => openStreams.delete(stream));
      }
      listener(request, response);
    },
  };
}

/** A proxy at `/ops` that removes this prefix from paths, as many do. */
export async function stripPrefix(prefix: string, target: string): Promise<string> {
  const proxy = createServer((request, response) => {
    const path = (request.url ?? "/").replace(prefix, "") || "/";
    void forward(request, response, target + path);
  });
  const listening = new Listening(proxy);
  await listening.open();
  onTestFinished(() => listening.close());
  return `http://127.0.0.1:${listening.port}${prefix}`;
}

async function forward(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
  const { request: send } = await import("node:http");
  const { host: _host, ...headers } = request.headers;
  const forwarded = send(url, { method: request.method ?? "GET", headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  response.once("close", () => forwarded.destroy());
  forwarded.once("error", () => response.destroy());
  request.pipe(forwarded);
}
