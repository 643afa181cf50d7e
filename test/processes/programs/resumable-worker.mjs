// A worker in a process of its own that goes through many items in one resumable step, for tests to kill and to stop.
// It is told everything in its one argument.

import { openSync, writeSync } from "node:fs";
import { connect, Workflow } from "pawl";

const { url, ledger, lease, checkpoint } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

class Sweep extends Workflow {
  static {
    this.resumableStep("sweep", { checkpoint }, (w, iter) => iter.over(range(w.input.items), note));
  }
}

function* range(count) {
  for (let item = 0; item < count; item += 1) yield item;
}

/** One write to a file that is only appended to: what has happened stays, whatever becomes of the process. */
function note(item) {
  writeSync(file, `${String(process.pid).padStart(9)} ${String(item).padStart(9)}\n`);
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
const worker = pawl.worker({ workflows: [Sweep], lease });

process.on("SIGTERM", async () => {
  await pawl.close();
  // Nothing is left open now: the process must end by itself.
  process.disconnect();
});
// Whoever started it is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send("ready");
