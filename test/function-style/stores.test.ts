/** A long workflow with all features on every store: the databases behave like the memory store of the other tests. */
import { PauseError, PermanentError, workflow } from "pawl";
import { crashTest } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, everyStore, forEachStore, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

const child = workflow("child", async (ctx, n: number) => {
  await ctx.sleep("nap", n);
  if (n === 13) throw new PermanentError("unlucky");
  return ctx.step("double", () => n * 2);
});

const longWorkflow = workflow("everything", async (ctx, order: { id: number }) => {
  const first = await ctx.step("first", () => ({ at: new Date(order.id), big: 3n }), { input: order });
  const flaky = await ctx.step("flaky", ({ attempt }) => {
    if (attempt < 3) throw new Error("again");
    return attempt;
  });
  await ctx.sleep("long", "40 days");
  const [signal, timeout] = [await ctx.waitForSignal("go"), await ctx.waitForSignal("never", { timeout: "1 day" })];
  const { name } = await ctx.race({ late: ctx.sleep("late", "3 days"), early: ctx.sleep("early", "2 days") });
  const way = await ctx.branch("way", () => "left" as const, { left: () => ctx.step("left", () => "went left") });
  const one = await ctx.run(child, 5);
  const unlucky = await ctx.run(child, 13).catch((error: Error) => (error.cause as Error).message);
  const many = await ctx.map(child, [30, 13, 10, 20], { concurrency: 2, tolerate: 1 });
  const both = await Promise.all([ctx.step("p", async () => 1), ctx.step("q", () => 2), ctx.waitForAll(["a", "b"])]);
  const steady = [ctx.random(), ctx.uuid(), ctx.now().getTime()];
  await ctx.sleep("replay", "1h");
  return {
    first,
    flaky,
    signal,
    timeout,
    name,
    way,
    one,
    unlucky,
    many: [...many],
    both,
    steady,
    patched: ctx.patched("p"),
  };
});

async function fresh(kind: AnyStoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  return { url: database.url, w: await world(kind, database.url) };
}

forEachStore((kind) => {
  test("a workflow that uses all features completes, with each step recorded once and the tables in agreement with the log", async () => {
    const { w } = await fresh(kind);
    const worker = await w.worker([longWorkflow, child]);
    const run = await w.pawl.start(longWorkflow, { id: 7 });
    for (const [name, payload] of [
      ["go", "there"],
      ["a", 1],
      ["b", 2],
    ] as const) {
      await run.signal(name, payload, { key: name });
      await run.signal(name, "twice", { key: name });
    }
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    const { steady, ...output } = await run.result({ timeout: "100s" });
    expect(output).toEqual({
      first: { at: new Date(7), big: 3n },
      flaky: 3,
      signal: "there",
      timeout: null,
      name: "early",
      way: "went left",
      one: 10,
      unlucky: "unlucky",
      many: [60, undefined, 20, 40],
      both: [1, 2, { a: 1, b: 2 }],
      patched: true,
    });
    expect(steady).toHaveLength(3);
    const ends = (await logOf(run)).filter((line) => line.startsWith("step.completed"));
    expect(new Set(ends).size).toBe(ends.length);
    expect((await w.pawl.verify()).differences).toEqual([]);
    expect((await w.pawl.workers()).every(({ executing }) => executing === 0)).toBe(true);
  });

  test("crashes at various commits do not change the result of that workflow", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const report = await crashTest(
      longWorkflow,
      { id: 7 },
      {
        workflows: [child],
        store: database.url,
        points: kind === "memory" ? sized(15, 40) : sized(2, 4),
        seed: kind,
        drive: async (run) => {
          for (const name of ["go", "a", "b"]) await run.signal(name, name, { key: name }).catch(() => {});
        },
        compare: (a, b) =>
          JSON.stringify({ ...a, first: 0, steady: 0 }) === JSON.stringify({ ...b, first: 0, steady: 0 }),
      },
    );
    expect(report.output.many).toEqual([60, undefined, 20, 40]);
  });

  test("a run is taken over from a dead worker, paused by onCrash, and repaired by an operator", async () => {
    const { w } = await fresh(kind);
    const started = gate();
    let charges = 0;
    const charge = workflow("charge", async (ctx) => {
      const paid = await ctx.step(
        "charge",
        async () => {
          charges += 1;
          started.open();
          return new Promise<string>(() => {});
        },
        { onCrash: "pause" },
      );
      const answer = await ctx.step("ask", () => {
        throw new PauseError("ask somebody", { resumeOn: "answered" });
      });
      return [paid, answer];
    });
    const first = await w.worker([charge]);
    const run = await w.pawl.start(charge);
    await started.opened;
    await first.kill();
    const second = await w.worker([charge]);
    await second.settle();
    expect(await run.status()).toBe("paused");
    await run.resume({ output: "paid by hand" });
    await second.settle();
    expect(await run.status()).toBe("paused");
    await run.skip();
    await second.settle();
    expect(await run.result({ timeout: "100s" })).toEqual(["paid by hand", undefined]);
    expect(charges).toBe(1);
    expect(await logOf(run)).toContain("run.recovered");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("canceling a parent cancels its children, and a time limit fails its run with a TimeoutError", async () => {
    const { w } = await fresh(kind);
    const parent = workflow(
      "parent",
      async (ctx) => void (await ctx.map(child, [86_400_000, 86_400_000], { concurrency: 1 })),
    );
    const limited = workflow("limited", { timeout: "1h" }, async (ctx) => void (await ctx.run(child, 86_400_000)));
    const worker = await w.worker([parent, limited, child]);
    const [canceled, overdue] = [await w.pawl.start(parent), await w.pawl.start(limited, undefined)];
    const due = await worker.settle();
    await canceled.cancel("enough");
    await worker.settle();
    w.clock.moveTo(due as number);
    await worker.settle();
    expect(await canceled.status()).toBe("canceled");
    expect((await errorOf(overdue.result({ timeout: "100s" }))).cause).toMatchObject({ code: "TIMEOUT" });
    const { runs } = await w.pawl.runs({ workflow: child });
    expect(runs.map(({ status }) => status)).toEqual(["canceled", "canceled", "canceled"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
}, everyStore);
