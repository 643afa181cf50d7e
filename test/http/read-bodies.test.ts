/** Bodies that the application around the handler has read before it. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, json, text } from "node:stream/consumers";
import { connect, type Pawl } from "pawl";
import { httpHandler, nodeListener } from "pawl/http";
import { expect, onTestFinished, test } from "vitest";
import { silent } from "../support/virtual-worlds.js";

async function pawlWith(errors: unknown[]): Promise<Pawl> {
  const logger = { ...silent, error: (_text: string, error: unknown) => void errors.push((error as Error).message) };
  const pawl = await connect("memory:", { logger });
  onTestFinished(() => pawl.close());
  await pawl.createWorkflow("order");
  return pawl;
}

const post = (url: string, body: string) =>
  fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });

const wasRead = expect.stringMatching(/^The application has read the body of the request before Pawl\./);

const parsers: Record<string, (request: IncomingMessage) => Promise<unknown>> = { json, text, bytes: buffer };

test.each(Object.keys(parsers))("a body that was read as %s and left in `body` is taken from there", async (kind) => {
  const pawl = await pawlWith([]);
  const listener = nodeListener(httpHandler(pawl));
  const url = await listenWith(async (request, response) => {
    const body = await (parsers[kind] as (typeof parsers)[string])(request);
    listener(Object.assign(request, { body }), response);
  });
  const started = await post(`${url}/api/v1/workflows/order/runs`, '{ "input": { "sku": "Ä-1" } }');
  const { id } = (await started.json()) as { id: string };
  expect((await pawl.run(id).get()).input).toEqual({ sku: "Ä-1" });
  expect((await post(`${url}/api/v1/workflows/order/runs`, '{ "wrong": 1 }')).status).toBe(400);
});

test("a body that was read and not passed on is an error, which the log explains", async () => {
  const errors: unknown[] = [];
  const listener = nodeListener(httpHandler(await pawlWith(errors)));
  const url = await listenWith(async (request, response) => {
    await json(request);
    listener(request, response);
  });
  expect((await post(`${url}/api/v1/workflows/order/runs`, "{}")).status).toBe(500);
  expect(errors).toEqual([wasRead]);
});

test("so is that of a Request", async () => {
  const errors: unknown[] = [];
  const handle = httpHandler(await pawlWith(errors), { authorize: () => ({ access: "all" }) });
  const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
  const request = new Request("http://ops.example/api/v1/workflows/order/runs", init);
  await request.json();
  expect((await handle(request)).status).toBe(500);
  expect(errors).toEqual([wasRead]);
});

async function listenWith(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener as never);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
