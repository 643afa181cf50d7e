// A worker in a process of its own whose runs fail and have much to undo; tests kill it meanwhile. Its one argument
// contains all settings.

import { openSync, writeSync } from "node:fs";
import { connect, graph, PermanentError, step } from "pawl";

const { url, ledger, lease } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");
/** A single write to an append-only file survives, whatever becomes of the process. */
const note = (line) => writeSync(file, `${line}\n`);

function book(name) {
  note(`book ${name}`);
  return `${name}-1`;
}

const names = ["flight", "hotel", "car", "theatre", "dinner"];
const steps = [];
for (const name of names) {
  const booked = step(name, () => book(name), {
    compensate: async (_ctx, output) => {
      note(`undo ${output}`);
      // Long enough for a kill to hit it.
      await new Promise((resolve) => setTimeout(resolve, 200));
    },
  });
  steps.push(steps.length === 0 ? booked : booked.after(steps.at(-1)));
}
const refuse = step("card", () => {
  throw new PermanentError("declined");
});
const trip = graph("trip", [...steps, refuse.after(steps.at(-1))]);

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
process.on("SIGTERM", async () => {
  await pawl.close();
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await pawl.worker({ workflows: [trip], lease }).start();
process.send("ready");
