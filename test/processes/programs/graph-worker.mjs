// A worker in a process of its own that executes the nodes of graphs; tests kill it. Its one argument contains all
// settings.

import { openSync, readFileSync, writeSync } from "node:fs";
import { connect, job } from "pawl";

const { url, ledger, lease, concurrency, stuckNumber } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

const work = job("Work", async ({ number }, { node }) => {
  // A single write to an append-only file survives, whatever becomes of the process.
  writeSync(file, `${String(process.pid).padStart(9)} ${String(number).padStart(9)}\n`);
  if (number === stuckNumber && executionsOf(number) === 1) await new Promise(() => {});
  // Long enough for a kill to hit it, and for the graph not to end while the successor of a killed process starts.
  await new Promise((resolve) => setTimeout(resolve, 100));
  return node.id;
});

const executionsOf = (number) =>
  readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "" && Number(line.slice(10)) === number).length;

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
const worker = pawl.worker({ workflows: [], jobs: [work], lease, concurrency });

process.on("SIGTERM", async () => {
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send({ workerId: worker.id });
