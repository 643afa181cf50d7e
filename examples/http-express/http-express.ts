/** The HTTP API in an Express application whose JSON parser runs first, for all paths. */
import express, { type Express } from "express";
import type { Pawl } from "pawl";
import { httpHandler, nodeListener } from "pawl/http";
import { bearerToken } from "../bearer-token.js";

export function createApp(pawl: Pawl, token: string): Express {
  const handle = httpHandler(pawl, {
    basePath: "/pawl",
    authorize: bearerToken(token, { user: "shop", access: "all" }),
  });
  const app = express();
  app.use(express.json({ limit: "2mb" })); // Express accepts 100 kB by default, less than Pawl's 2 MiB.
  app.use("/pawl", nodeListener(handle));
  app.post("/echo", (request, response) => void response.json(request.body));
  return app;
}
