/** Serves the HTTP API, with a worker in the same process: `PAWL_TOKEN=… node out/http-node/main.js` */
import type { AddressInfo } from "node:net";
import { connect } from "pawl";
import { createApp } from "./http-node.js";
import { order } from "./order.js";

const pawl = await connect(process.env.DATABASE_URL);
const server = createApp(pawl, process.env.PAWL_TOKEN ?? "");
await pawl.worker({ workflows: [order] }).start();
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/pawl`);
});

process.once("SIGTERM", async () => {
  server.close();
  // Streams of events stay open until the client goes or the run ends.
  server.closeAllConnections();
  await pawl.close();
});
