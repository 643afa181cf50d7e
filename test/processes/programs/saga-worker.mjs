// A worker in a process of its own whose runs fail and have much to undo, for tests to kill while it does.
// It is told everything in its one argument.

import { openSync, writeSync } from "node:fs";
import { connect, graph, PermanentError, step } from "pawl";

const { url, ledger, lease } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");
/** One write to a file that is only appended to: what has happened stays, whatever becomes of the process. */
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
      // Time enough to be killed in.
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
// Whoever started it is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await pawl.worker({ workflows: [trip], lease }).start();
process.send("ready");
