// A worker whose steps call a service that allows ten calls at a time.
import { connect, limit, workflow } from "pawl";

const { database, service } = JSON.parse(process.argv[2]);
const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const pawl = await connect(database, { logger: silent });
const perService = limit("service", { concurrency: 10 });

/** Three workflows that call the service in different ways. */
const call = (ctx, name) => ctx.step(name, async () => (await fetch(service)).text(), { limit: perService });
const workflows = [
  workflow("one_call", (ctx) => call(ctx, "call")),
  workflow("two_calls", (ctx) => Promise.all([call(ctx, "first"), call(ctx, "second")])),
  workflow("calls_in_turn", async (ctx) => [await call(ctx, "first"), await call(ctx, "second")]),
];
const worker = pawl.worker({ workflows, concurrency: 50 });
await worker.start();
process.send("ready");
process.on("SIGTERM", async () => {
  await worker.stop();
  await pawl.close();
  process.disconnect();
});
