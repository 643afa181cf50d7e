// A worker in a process of its own that iterates over many items in one resumable step; tests kill and stop it. Its one
// argument contains all settings.

import { openSync, writeSync } from "node:fs";
import { connect, Workflow } from "pawl";

const { url, ledger, lease, checkpoint, holdAt } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

class Sweep extends Workflow {
  static {
    this.resumableStep("sweep", { checkpoint }, (w, iter) => iter.over(range(w.input.items), note));
  }
}

function* range(count) {
  for (let item = 0; item < count; item += 1) yield item;
}

let release;
const stopping = new Promise((resolve) => {
  release = resolve;
});

/** A single write to an append-only file survives, whatever becomes of the process. */
function note(item) {
  writeSync(file, `${String(process.pid).padStart(9)} ${String(item).padStart(9)}\n`);
  // The test kills or stops this process soon. On a busy machine the step must not end before that.
  if (item >= holdAt) return stopping;
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
const worker = pawl.worker({ workflows: [Sweep], lease });

process.on("SIGTERM", async () => {
  release();
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send("ready");
