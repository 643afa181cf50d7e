/** Serves the HTTP API with Hono, with a worker in the same process: `PAWL_TOKEN=… node out/http-hono/main.js` */
import { serve } from "@hono/node-server";
import { connect } from "pawl";
import { order } from "../http-node/order.js";
import { createApp } from "./http-hono.js";

const pawl = await connect(process.env.DATABASE_URL);
const { fetch } = createApp(pawl, process.env.PAWL_TOKEN ?? "");
await pawl.worker({ workflows: [order] }).start();
const server = serve({ fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}/pawl`);
});

process.once("SIGTERM", async () => {
  server.close();
  if ("closeAllConnections" in server) server.closeAllConnections();
  await pawl.close();
});
