// A worker in a process of its own that executes either the steps of a class or the job of one of them; tests kill it.
// Its one argument contains all settings.

import { existsSync, openSync, writeSync } from "node:fs";
import { connect, job, Workflow } from "pawl";

const { url, ledger, gate, lease, role, stuckAt } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");
const forever = () => new Promise((resolve) => setInterval(resolve, 2 ** 30).ref());

const charge = job("Charge", async ({ number }) => {
  // A single write to an append-only file survives, whatever becomes of the process.
  writeSync(file, `${String(process.pid).padStart(9)} ${String(number).padStart(9)}\n`);
  while (!existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 5));
  return number;
});

class Order extends Workflow {
  static {
    this.task("pay", { job: "Charge", args: (w) => ({ number: w.input.number }) });
    // Until this resolves, the worker keeps the run and dies with it.
    this.task("side", () => (stuckAt === "side" ? forever() : undefined));
    this.step("ship", { dependsOn: ["pay", "side"] }, () => {});
  }
  async afterStepExecution({ step }) {
    if (stuckAt === "hook" && step === "pay") await forever();
  }
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
const able = role === "job" ? { workflows: [], jobs: [charge] } : { workflows: [Order] };
const worker = pawl.worker({ ...able, lease });

process.on("SIGTERM", async () => {
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send({ workerId: worker.id });
