// A worker of workflows with limits in a process of its own; campaigns kill it, stop it and start it again. Its one argument
// contains all settings. Each body appends a line to a file outside of the database. What the limits of each workflow are is
// written once more, for the checker, in test/torture/limits/limit-rules.ts.

import { closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, graph, limit, PermanentError, step, Workflow, workflow } from "pawl";

const { url, bodies, lease, name, poll, concurrency, places, housekeeping } = JSON.parse(process.argv[2]);
const file = openSync(bodies, "a");

/** A body: notes that it begins, and takes up to `ms`. */
async function work(run, body, ms = 15) {
  writeSync(file, `${JSON.stringify({ run, body, pid: process.pid, at: Date.now() })}\n`);
  await sleep(Math.random() * ms);
}

const tenant = limit("tenant", { key: "input.tenant", concurrency: concurrency.tenant });
const api = limit("api", { concurrency: concurrency.api });
const region = limit("region", { key: ({ input }) => input.tenant.slice(-1), concurrency: concurrency.region });
const pace = limit("pace", { key: "input.tenant", rate: { limit: concurrency.pace, per: "1s", burst: 2 } });
const paceOfApi = limit("pace_of_api", { rate: { limit: 2 * concurrency.pace, per: "1s" } });
const mutex = limit("mutex", { key: "input.tenant", concurrency: 1, while: "open" });
const calls = limit("calls", { concurrency: concurrency.api });
const callsOfTenant = limit("calls_of_tenant", { key: "input.tenant", concurrency: 1 });
const tokens = limit("tokens", { rate: { limit: 5 * concurrency.pace, per: "1s", burst: 5 } });
const retry = { attempts: 20, initial: 50, factor: 2, max: 500 };
const once = (ctx, body, ms) => ctx.step(body, () => work(ctx.runId, body, ms), { retry });

const plain = workflow("plain", { limits: [tenant] }, async (ctx) => {
  await once(ctx, "one");
  await once(ctx, "two");
});
const fair = workflow("fair", { limits: [api], fairBy: "input.tenant" }, (ctx) => once(ctx, "only"));
const turns = workflow("turns", { fairBy: "input.tenant" }, (ctx) => once(ctx, "only"));
const triple = workflow("triple", { limits: [region, tenant, api], fairBy: "input.tenant" }, async (ctx) => {
  await Promise.all([once(ctx, "left"), once(ctx, "right")]);
});
const sleeper = workflow("sleeper", { limits: [region] }, async (ctx, { ms }) => {
  await once(ctx, "before");
  await ctx.sleep("nap", ms);
  await once(ctx, "between");
  await ctx.sleep("another", ms);
  await once(ctx, "after");
});
const listener = workflow("listener", { limits: [api] }, async (ctx) => {
  await once(ctx, "before");
  await ctx.waitForSignal("go", { timeout: 2_000 });
  await once(ctx, "after");
});
const flaky = workflow("flaky", { limits: [tenant, api] }, async (ctx, { failures }) => {
  await ctx.step(
    "fails",
    async ({ attempt }) => {
      await work(ctx.runId, "fails");
      if (attempt <= failures) throw new Error("a planned failure");
    },
    { retry: { attempts: 5, initial: 200, factor: 1 } },
  );
  if (failures === 3) throw new PermanentError("a planned end");
});
const pauser = workflow("pauser", { limits: [tenant] }, async (ctx) => {
  await once(ctx, "before");
  await ctx.pause("until an operator resumes it");
  await once(ctx, "after");
});
const child = workflow("child", { limits: [tenant, region] }, (ctx) => once(ctx, "only"));
const parent = workflow("parent", { limits: [tenant, region] }, async (ctx, { tenant: key, children }) => {
  await once(ctx, "before");
  await ctx.run(child, { tenant: key }, { name: "first" }).catch(() => null);
  const items = Array.from({ length: children }, () => ({ tenant: key }));
  await ctx.map(child, items, { concurrency: 2, tolerate: items.length });
  await once(ctx, "after");
});
const inGraph = (body) => step(body, (ctx) => work(ctx.runId, body), { retry });
const [first, second, third] = ["first", "second", "third"].map(inGraph);
const order = graph("order", [first, second.after(first), third.after(first)], {
  limits: [tenant],
  fairBy: "input.tenant",
});
class Sweep extends Workflow {
  static {
    this.options({ limits: [region], allowMultiple: true, retry });
    this.step("open", (w) => work(w.runId, "open"));
    this.resumableStep("sweep", { maxIterations: 3 }, async (w, iter) => {
      await iter.over([1, 2, 3, 4, 5, 6, 7], () => work(w.runId, "sweep", 5));
    });
    this.step("close", { wait: 100 }, (w) => work(w.runId, "close"));
  }
}
const paced = workflow("paced", { limits: [pace] }, async (ctx) => {
  await once(ctx, "before");
  await ctx.sleep("nap", 100);
  await once(ctx, "after");
});
const pacedApi = workflow("pacedApi", { limits: [paceOfApi, api], fairBy: "input.tenant" }, (ctx) => once(ctx, "only"));
const customer = workflow("customer", { limits: [mutex, tenant] }, async (ctx, { ms }) => {
  await once(ctx, "before");
  await ctx.sleep("nap", ms);
  await once(ctx, "between");
  await ctx.waitForSignal("go", { timeout: 300 });
  await once(ctx, "after");
});
const caller = workflow("caller", async (ctx, { units }) => {
  const call = (body, one, more = {}) => ctx.step(body, () => work(ctx.runId, body), { retry, limit: one, ...more });
  await Promise.all([call("left", calls), call("right", calls), call("ask", tokens, { units })]);
  await ctx.sleep("nap", 50);
  await ctx.step(
    "last",
    async ({ attempt }) => {
      await work(ctx.runId, "last");
      if (attempt === 1) throw new Error("a planned failure");
    },
    { retry: { attempts: 5, initial: 200, factor: 1 }, limit: callsOfTenant },
  );
});
const limitedCaller = workflow("limitedCaller", { limits: [tenant, api] }, async (ctx) => {
  await ctx.step("first", () => work(ctx.runId, "first"), { retry, limit: callsOfTenant });
  await ctx.step("second", () => work(ctx.runId, "second"), { retry, limit: calls, timeout: 200 });
});
const free = workflow("free", (ctx) => once(ctx, "only"));

const print =
  (level) =>
  (...args) =>
    console.error(new Date().toISOString(), level, ...args.map((arg) => (arg instanceof Error ? arg.stack : arg)));
const pawl = await connect(url, {
  logger: { debug: () => {}, info: () => {}, warn: print("warn"), error: print("error") },
});
const worker = pawl.worker({
  workflows: [
    ...[plain, fair, turns, triple, sleeper, listener, flaky, pauser, child, parent, order, Sweep, free],
    ...[paced, pacedApi, customer, caller, limitedCaller],
  ],
  ...{ name, lease, poll, housekeeping, concurrency: places, grace: 5_000 },
});

process.on("message", async (message) => {
  if (message !== "stop") return;
  await pawl.close();
  closeSync(file);
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send("ready");
