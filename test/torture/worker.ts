/** A worker of a campaign, in a process of its own, which is killed, stopped and cut off. */
import { connect } from "pawl";
import { LedgerWriter } from "./ledger.js";
import type { Order, ProcessOptions } from "./messages.js";
import { timedLogger } from "./timed-logger.js";
import { workloadOf } from "./workflows/index.js";

const { url, store, ledger: folder, name, leaseMs } = JSON.parse(process.argv[2] as string) as ProcessOptions;
const ledger = new LedgerWriter(folder, name);

// The campaign process is gone, so nothing else would end this process.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

const pawl = await connect(url, { logger: timedLogger });
const worker = pawl.worker({
  ...workloadOf({ ledger, store }),
  name,
  lease: leaseMs,
  poll: 500,
  concurrency: 25,
  grace: 5_000,
  housekeeping: 5_000,
});
process.on("message", async (order: Order) => {
  if (order.kind !== "stop") return;
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
await worker.start();
process.send?.({ kind: "ready" });
