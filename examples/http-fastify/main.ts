/** Serves the HTTP API with Fastify, with a worker in the same process: `PAWL_TOKEN=… node out/http-fastify/main.js` */
import { connect } from "pawl";
import { order } from "../http-node/order.js";
import { createApp } from "./http-fastify.js";

const pawl = await connect(process.env.DATABASE_URL);
const app = createApp(pawl, process.env.PAWL_TOKEN ?? "");
await pawl.worker({ workflows: [order] }).start();
console.log(`listening on ${await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 3000) })}/pawl`);

process.once("SIGTERM", async () => {
  await app.close();
  await pawl.close();
});
