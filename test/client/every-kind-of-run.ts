/** A database that contains every kind of run, for the tests of `verify`. */
import { graph, job, PermanentError, step, Workflow, workflow } from "pawl";
import { onTestFinished } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { world } from "../support/virtual-worlds.js";

const child = workflow("child", async (ctx, n: number) => {
  await ctx.sleep("nap", n);
  return n;
});
const waiter = workflow("waiter", (ctx, _input: unknown) => ctx.waitForSignal("go"));
/** No worker has this workflow, so its runs never start. */
const withoutWorker = workflow("unserved", async (_ctx, n: number) => n);
const busy = workflow("busy", async (ctx, n: number) => {
  await ctx.step("flaky", ({ attempt }) => {
    if (attempt === 1) throw new Error("once");
  });
  const all = await ctx.map(child, [10, 20, 30], { concurrency: 2 });
  return { n, sum: all.reduce((sum, one) => sum + one, 0) };
});
const steps = workflow("steps", async (ctx, _input: unknown) => {
  for (const name of ["a", "b", "c"]) await ctx.step(name, () => name);
  await ctx.sleep("long", "10 days");
});
const failing = workflow("failing", async (ctx, _input: unknown) => {
  await ctx.step("first", () => 1);
  throw new PermanentError("no");
});
const manyChildren = workflow("crowd", async (ctx, _input: unknown) => {
  const first = await ctx.start(waiter, "first");
  const done = await ctx.run(child, 1, { name: "done" });
  const all = await ctx.map(waiter, [1, 2, 3], { concurrency: 1, name: "all" });
  return [done, all.length, await first.result()];
});
const stranded = workflow("stranded", (ctx, _input: unknown) =>
  ctx.map(withoutWorker, [1, 2, 3], { concurrency: 2, name: "all" }),
);
const saga = workflow("saga", async (ctx, _input: unknown) => {
  await ctx.step("book", () => "booked", { compensate: () => {} });
  await ctx.waitForSignal("never");
});
const double = job("Double", ({ n }: { n: number }) => n * 2);

class Import extends Workflow {
  static {
    this.step("fetch", () => {});
    this.resumableStep("items", {}, async (w, iter) => {
      await iter.set(1);
      await w.waitForSignal("more");
    });
  }
}

/** A chain and a graph whose outputs depend on each other; the run is parked between two steps. */
class Proof extends Workflow {
  static {
    this.step("draft", () => "genuine draft");
    this.step("review", { wait: "1 hour" }, () => "genuine review");
    this.step("publish", { wait: "1 hour" }, () => "genuine issue");
  }
}
const [sand, glass] = [step("sand", () => "genuine sand"), step("glass", () => "genuine glass")];
const lens = step("lens", async (ctx) => {
  await ctx.sleep("polish", "1 hour");
  return "genuine lens";
});
const proof = graph("proof", [sand, glass.after(sand), lens.after(sand, glass)]);

const declared = graph("declared", [step("one", () => 1), step("two", () => 2)]);

export async function everyKindOfRun(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const { pawl, clock } = w;
  const served = [busy, child, steps, failing, waiter, manyChildren, stranded, saga, Import, declared, Proof, proof];
  const worker = await w.worker(served, { jobs: [double] });
  const nodes = (g: Parameters<Parameters<typeof pawl.build>[1]>[0]) => {
    const a = g.node("a", { job: double, args: { n: 1 } });
    g.node("b", { job: double, args: { n: 2 }, dependsOn: [a] });
  };
  const many = <T>(make: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: 4 }, make));
  const runs = {
    done: await many(() => pawl.start(busy, 7)),
    sleeping: await many(() => pawl.start(steps, 1)),
    failed: await many(() => pawl.start(failing, 1)),
    waiting: await many(() => pawl.start(waiter, 1)),
    canceled: await pawl.start(steps, 1),
    paused: await pawl.start(waiter, 1),
    heroes: await Promise.all(
      ["1", "2"].map((id) =>
        pawl.start(waiter, 1, { hero: { type: "User", id }, allowMultiple: false, tags: ["vip"] }),
      ),
    ),
    delayed: await many(() => pawl.start(waiter, 1, { delay: "5 days" })),
    pausedUnbegun: await pawl.start(waiter, 1, { delay: "5 days" }),
    keyed: await pawl.start(withoutWorker, 1, { idempotencyKey: "k" }),
    crowd: await many(() => pawl.start(manyChildren, 1)),
    stranded: await pawl.start(stranded, 1),
    saga: await pawl.start(saga, 1),
    imported: await pawl.start(Import),
    declared: await pawl.start(declared),
    chains: await many(() => pawl.start(Proof)),
    graphs: await many(() => pawl.start(proof)),
    built: await pawl.build("built", nodes),
    stored: await pawl.build("stored", nodes, { start: false }),
  };
  const end = clock.read() + 86_400_000;
  for (let due = await worker.settle(); due !== null && due < end; due = await worker.settle()) clock.moveTo(due);
  await runs.canceled.cancel("no");
  await runs.paused.pause("later");
  await runs.pausedUnbegun.pause("later");
  for (const run of runs.waiting) await run.signal("other", 1, { key: "once" });
  await worker.settle();
  const forked = await (runs.failed[3] as (typeof runs.failed)[number]).retry();
  await worker.settle();
  return { w, worker, url: database.url, runs: { ...runs, forked }, workflows: { waiter } };
}

export type EveryKindOfRun = Awaited<ReturnType<typeof everyKindOfRun>>;
