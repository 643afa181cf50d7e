/** A worker process of the demo. Started by main.ts with the database, the ledger and its name. */
import { connect, type Logger } from "pawl";
import { Ledger } from "./ledger.js";
import { orderWorkflow } from "./order.js";

const [database = "", ledger = "", name = ""] = process.argv.slice(2);

/** Messages go to the parent, which owns the screen. */
const tell = (...args: unknown[]) => void process.send?.(args.map(String).join(" "));
const logger: Logger = { debug: () => {}, info: () => {}, warn: tell, error: tell };

const pawl = await connect(database, { logger });
const worker = pawl.worker({
  workflows: [orderWorkflow(new Ledger(ledger))],
  name,
  concurrency: 6,
  // How long the worker may miss its heartbeats before others take its runs. The default is ten seconds; the demo
  // should be short.
  lease: "2s",
});
await worker.start();

process.once("disconnect", () => void pawl.close());
