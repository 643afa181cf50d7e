import { expect, test } from "vitest";
import { call, pawlWithWorker, served, testMount, token } from "../http-node/harness.js";
import { createApp } from "./http-express.js";

async function mount() {
  const app = createApp(await pawlWithWorker(), token);
  return served((onListening) => app.listen(0, "127.0.0.1", onListening));
}

testMount(mount);

test("the application's own routes get parsed bodies as before", async () => {
  const app = await mount();
  expect((await call(app, "/echo", { a: 1 })).json).toEqual({ a: 1 });
});

test("a body that is larger than Express accepts by default reaches Pawl", async () => {
  const app = await mount();
  const input = { sku: "x".repeat(500_000) };
  expect((await call(app, "/pawl/api/v1/workflows/order/runs", { input })).status).toBe(201);
});
