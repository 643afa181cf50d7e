/** Serves the HTTP API with Express, with a worker in the same process: `PAWL_TOKEN=… node out/http-express/main.js` */
import type { AddressInfo } from "node:net";
import { connect } from "pawl";
import { order } from "../http-node/order.js";
import { createApp } from "./http-express.js";

const pawl = await connect(process.env.DATABASE_URL);
const app = createApp(pawl, process.env.PAWL_TOKEN ?? "");
await pawl.worker({ workflows: [order] }).start();
const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/pawl`);
});

process.once("SIGTERM", async () => {
  server.close();
  server.closeAllConnections();
  await pawl.close();
});
