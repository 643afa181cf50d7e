// A worker in a process of its own whose event loop some of its runs block for ever, for tests to kill. It is told everything
// in its one argument.

import { connect, Workflow, workflow } from "pawl";

const { url, name, lease, concurrency } = JSON.parse(process.argv[2]);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function spin() {
  for (;;);
}

/** The same for the event loop, but it leaves the processor to others. */
function sit() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

const spins = workflow("spins", async (ctx) => {
  await ctx.step("before", () => {});
  await ctx.step("spin", spin);
});

/** Nothing that Pawl has called is on the stack when it blocks. */
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
// Whoever started it is gone. (A blocked process does not hear it: the test kills it.)
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await pawl.worker({ name, workflows: [spins, spinsLater, SpinsInClass, healthy], lease, concurrency }).start();
process.send("ready");
