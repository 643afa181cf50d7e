/** The tests that every framework must pass when the HTTP API is mounted in it at "/pawl". */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, type Pawl } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { silent } from "../../test/support/virtual-worlds.js";
import { createApp } from "./http-node.js";
import { order } from "./order.js";

export const token = "0123456789abcdef0123456789abcdef";

export interface Mounted {
  /** Sends a request to the application, through a port or directly. */
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>;
}

/** Pawl on a database of its own, with a worker, closed when the test ends. */
export async function pawlWithWorker(): Promise<Pawl> {
  const database = await testDatabase("memory");
  const pawl = await connect(database.url, { logger: silent });
  await pawl.worker({ workflows: [order] }).start();
  onTestFinished(async () => {
    await pawl.close();
    await database.drop();
  });
  return pawl;
}

export interface Served extends Mounted {
  readonly url: string;
}

/** @param listen makes the application listen on a free port of this machine until the test ends, and calls back when it does */
export async function served(listen: (onListening: () => void) => Server): Promise<Served> {
  const server = await new Promise<Server>((resolve) => {
    const listening = listen(() => resolve(listening));
  });
  // By default a connection that was idle for five seconds is closed, perhaps just when the next request of a slow machine comes.
  server.keepAliveTimeout = 0;
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, fetch: (path, init) => fetch(url + path, init) };
}

/** The application of plain Node, and the variables that programs in other languages need to use it. */
export async function serveNode() {
  const pawl = await pawlWithWorker();
  const server = createApp(pawl, token);
  const app = await served((onListening) => server.listen(0, "127.0.0.1", onListening));
  return { ...app, pawl, variables: { PAWL_URL: `${app.url}/pawl`, PAWL_TOKEN: token } };
}

const authorized = { authorization: `Bearer ${token}` };

/** The request of a client that has the token, and its answer as JSON. */
export async function call(mounted: Mounted, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await mounted.fetch(path, {
    headers: { ...authorized, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as any };
}

/** @param mount serves the application of the example; called once in each test */
export function testMount(mount: () => Promise<Mounted>): void {
  test("a request without the token, or with another one, is refused", async () => {
    const app = await mount();
    for (const headers of [{}, { authorization: `Bearer ${token}x` }, { authorization: token }]) {
      const response = await app.fetch("/pawl/api/v1/runs", { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(await response.json()).toMatchObject({ code: "UNAUTHORIZED" });
    }
    const start = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    expect((await app.fetch("/pawl/api/v1/workflows/order/runs", start)).status).toBe(401);
    expect((await app.fetch("/pawl/live")).status).toBe(200);
  });

  test("a run is started, signalled and awaited", async () => {
    const app = await mount();
    const key = { "idempotency-key": "cart-77" };
    const started = await call(app, "/pawl/api/v1/workflows/order/runs", { input: { sku: "Ä-1" } }, key);
    expect(started).toMatchObject({ status: 201, json: { created: true } });
    const { id } = started.json;
    const again = await call(app, "/pawl/api/v1/workflows/order/runs", { input: { sku: "Ä-1" } }, key);
    expect(again).toMatchObject({ status: 200, json: { id, created: false } });
    const signal = { name: "approved", payload: { by: "finance" }, key: "webhook-9" };
    expect(await call(app, `/pawl/api/v1/runs/${id}/signals`, signal)).toMatchObject({ status: 200 });
    const result = await call(app, `/pawl/api/v1/runs/${id}/result`);
    expect(result.json).toMatchObject({
      status: "completed",
      output: { shelf: "shelf of Ä-1", approvedBy: "finance" },
    });
    const { events } = (await call(app, `/pawl/api/v1/runs/${id}/history`)).json;
    expect(events.find(({ type }: { type: string }) => type === "command.accepted").data.by).toBe("shop");
  });

  test("the events of a run arrive while it runs, and a client that comes back continues", async () => {
    const app = await mount();
    const { id } = (await call(app, "/pawl/api/v1/workflows/order/runs", { input: { sku: "A-1" } })).json;
    const first = await openStream(app, `/pawl/api/v1/runs/${id}/events`);
    const seen = await first.readUntil("wait.started");
    await first.stop();
    await call(app, `/pawl/api/v1/runs/${id}/signals`, { name: "approved", payload: { by: "finance" } });
    const second = await openStream(app, `/pawl/api/v1/runs/${id}/events`, { "last-event-id": `${seen.at(-1)?.id}` });
    const rest = await second.readUntil("end");
    const ids = [...seen, ...rest].flatMap(({ id: number }) => (number === null ? [] : [number]));
    expect(ids).toEqual(ids.map((_, index) => index + 1));
    expect(rest.map(({ type }) => type).slice(-2)).toEqual(["run.completed", "end"]);
  });

  test("what Pawl refuses is answered by Pawl", async () => {
    const app = await mount();
    expect(await call(app, "/pawl/api/v1/nothing")).toMatchObject({ status: 404, json: { code: "NOT_FOUND" } });
    expect(await call(app, "/pawl/api/v1/workflows/order/runs", { inputs: 1 })).toMatchObject({
      status: 400,
      json: { code: "BAD_REQUEST" },
    });
    expect(await call(app, "/pawl/api/v1/workflows/none/runs", { input: 1 })).toMatchObject({
      status: 404,
      json: { code: "WORKFLOW_NOT_FOUND" },
    });
  });
}

interface StreamedEvent {
  readonly id: number | null;
  /** The type of the run's event, or the name of the event of the stream. */
  readonly type: string;
}

async function openStream(app: Mounted, path: string, headers: Record<string, string> = {}) {
  const abort = new AbortController();
  const response = await app.fetch(path, { headers: { ...authorized, ...headers }, signal: abort.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    /** Reads up to and including the first event of this type. */
    async readUntil(type: string): Promise<StreamedEvent[]> {
      const events: StreamedEvent[] = [];
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`The stream ended before ${type}.`);
        text += decoder.decode(value, { stream: true });
        const blocks = text.split("\n\n");
        text = blocks.pop() as string;
        events.push(...blocks.flatMap(parseEvent));
        if (events.some((event) => event.type === type)) return events;
      }
    },
    async stop(): Promise<void> {
      abort.abort();
      await reader.cancel().catch(() => {});
    },
  };
}

function parseEvent(block: string): StreamedEvent[] {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const data = fields.get("data");
  if (data === undefined) return [];
  const id = fields.get("id");
  return [{ id: id === undefined ? null : Number(id), type: fields.get("event") ?? JSON.parse(data).type }];
}
