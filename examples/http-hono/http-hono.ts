/** The HTTP API in a Hono application. On Bun, Deno and Workers-like servers it is the same line. */
import { Hono } from "hono";
import type { Pawl } from "pawl";
import { httpHandler } from "pawl/http";
import { bearerToken } from "../bearer-token.js";

export function createApp(pawl: Pawl, token: string): Hono {
  const handle = httpHandler(pawl, {
    basePath: "/pawl",
    authorize: bearerToken(token, { user: "shop", access: "all" }),
  });
  const app = new Hono();
  app.all("/pawl/*", (c) => handle(c.req.raw));
  app.post("/echo", async (c) => c.json(await c.req.json()));
  return app;
}
