// A worker in a process of its own, some of whose runs block the event loop for ever; tests kill it. Its one argument
// contains all settings.

import { connect, Workflow, workflow } from "pawl";

const { url, name, lease, concurrency } = JSON.parse(process.argv[2]);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function spin() {
  for (;;);
}

/** Blocks the event loop as well, but leaves the processor to others. */
function sit() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

const spins = workflow("spins", async (ctx) => {
  await ctx.step("before", () => {});
  await ctx.step("spin", spin);
});

const sits = workflow("sits", async (ctx) => {
  await ctx.step("before", () => {});
  await ctx.step("spin", sit);
});

/** No frame of Pawl is on the stack when it blocks. */
const spinsLater = workflow("spinsLater", async (ctx) => {
  await ctx.step("spin", async () => {
    await pause(50);
    sit();
  });
});

class SpinsInClass extends Workflow {
  static {
    this.step("spin", sit);
  }
}

const healthy = workflow("healthy", async (ctx) => {
  for (const step of ["one", "two", "three", "four"]) await ctx.step(step, () => pause(100));
  await ctx.sleep("nap", 50);
  return "done";
});

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const pawl = await connect(url, { logger: silent });
process.on("SIGTERM", async () => {
  await pawl.close();
  process.disconnect();
});
// The process that started this one is gone. (A blocked process does not notice: the test kills it.)
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await pawl.worker({ name, workflows: [spins, sits, spinsLater, SpinsInClass, healthy], lease, concurrency }).start();
process.send("ready");
