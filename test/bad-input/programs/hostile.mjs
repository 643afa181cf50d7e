// A worker whose workflows misbehave. Its arguments are the URL of the database and a ledger file.

import { appendFileSync, readFileSync } from "node:fs";
import { connect, TransientError, workflow } from "pawl";

const [url, ledger] = process.argv.slice(2);
const note = (line) => appendFileSync(ledger, `${line}\n`);
const times = (line) =>
  readFileSync(ledger, "utf8")
    .split("\n")
    .filter((one) => one === line).length;

/** Ends its process on the first attempt. */
const exits = workflow("exits", async (ctx) => {
  await ctx.step("before", () => note("before"));
  await ctx.step("exit", () => {
    note("exit");
    if (times("exit") === 1) process.exit(3);
  });
  return ctx.step("after", () => "survived");
});

/** Leaves unhandled rejections, in a step and in the handler. */
const rejects = workflow("rejects", async (ctx) => {
  const first = ctx.attempt === 1;
  await ctx.step("float", async () => {
    if (first) void Promise.reject(new Error("floating in the step"));
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  return "survived";
});

/** Starts a step that fails, and awaits it only after a sleep. */
const late = workflow("late", async (ctx) => {
  const step = ctx.step(
    "fails",
    () => {
      throw new Error("before it is awaited");
    },
    { retry: { attempts: 1 } },
  );
  await ctx.sleep("nap", 100);
  return step.catch(() => "survived");
});

/** Starts a child that fails, and awaits it only after a sleep. */
const lateChild = workflow("late_child", async (ctx) => {
  const child = ctx.run("fails_at_once", undefined);
  const unknown = ctx.start("nowhere", undefined);
  await ctx.sleep("nap", 300);
  await unknown.catch(() => {});
  return child.catch(() => "survived");
});

const failsAtOnce = workflow("fails_at_once", () => {
  throw new Error("before its parent awaits it");
});

/** Asks for a retry at a time computed from a missing header. */
const nonsense = workflow("nonsense", { retry: { initial: 1 } }, async (ctx) => {
  note("nonsense");
  if (times("nonsense") === 1) throw new TransientError("busy", { retryAfter: Date.parse("") - Date.now() });
  return ctx.step("after", () => "survived");
});

/** Throws in a timer, where no code can catch the error. */
const throwsLater = workflow("throws_later", async (ctx) => {
  await ctx.step("timer", async () => {
    note("timer");
    if (times("timer") === 1)
      setTimeout(() => {
        throw new Error("in a timer");
      }, 5);
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
  return "survived";
});

/** Blocks the event loop for longer than the lease. */
const blocks = workflow("blocks", async (ctx) => {
  await ctx.step("block", () => {
    note("block");
    const until = Date.now() + (times("block") === 1 ? 1_500 : 0);
    while (Date.now() < until);
  });
  return "survived";
});

const fine = workflow("fine", async (ctx) => ctx.step("fine", () => "fine"));

const pawl = await connect(url, { logger: { debug() {}, info() {}, warn() {}, error() {} } });
const workflows = [exits, rejects, late, lateChild, failsAtOnce, nonsense, throwsLater, blocks, fine];
const worker = pawl.worker({ workflows, lease: 600, poll: 100 });
await worker.start();
process.send("ready");
process.on("message", async () => {
  await pawl.close();
  process.disconnect();
});
process.on("disconnect", () => setTimeout(() => process.exit(1), 3_000).unref());
