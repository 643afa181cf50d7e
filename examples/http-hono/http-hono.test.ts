import type { Server } from "node:http";
import { serve } from "@hono/node-server";
import { expect, test } from "vitest";
import { call, pawlWithWorker, served, testMount, token } from "../http-node/harness.js";
import { createApp } from "./http-hono.js";

async function mount() {
  const { fetch } = createApp(await pawlWithWorker(), token);
  return served((onListening) => serve({ fetch, hostname: "127.0.0.1", port: 0 }, onListening) as Server);
}

testMount(mount);

test("the application's own routes work as before", async () => {
  const app = await mount();
  expect((await call(app, "/echo", { a: 1 })).json).toEqual({ a: 1 });
});
