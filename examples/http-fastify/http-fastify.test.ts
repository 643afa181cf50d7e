import { expect, test } from "vitest";
import { call, pawlWithWorker, served, testMount, token } from "../http-node/harness.js";
import { createApp } from "./http-fastify.js";

async function mount() {
  const app = createApp(await pawlWithWorker(), token);
  await app.ready();
  return served((onListening) => app.server.listen(0, "127.0.0.1", onListening));
}

testMount(mount);

test("the application's own routes get parsed bodies as before", async () => {
  const app = await mount();
  expect((await call(app, "/echo", { a: 1 })).json).toEqual({ a: 1 });
});

test("a body that is larger than Fastify accepts by default reaches Pawl", async () => {
  const app = await mount();
  const input = { sku: "x".repeat(1_030_000) };
  expect((await call(app, "/pawl/api/v1/workflows/order/runs", { input })).status).toBe(201);
});

test("inject(), which Fastify has for tests, reaches Pawl", async () => {
  const app = createApp(await pawlWithWorker(), token);
  const response = await app.inject({
    method: "POST",
    url: "/pawl/api/v1/workflows/order/runs",
    headers: { authorization: `Bearer ${token}` },
    payload: { input: { sku: "A-1" } },
  });
  expect([response.statusCode, response.json().created]).toEqual([201, true]);
  await app.close();
});
