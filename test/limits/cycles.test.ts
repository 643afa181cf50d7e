/** Rule 4: runs with `while: "open"` that would wait for each other for ever. */
import { LimitCycleError, limit, type RunFailedError, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { everyStore, forEachStore } from "../support/databases.js";
import { databaseFor, keepWorking, start, world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

interface Input {
  readonly own: string;
  /** The key of the child that it waits for. */
  readonly next?: string;
}

/** Runs that hold a slot of their key until they end, and wait for a child with another key or the same. */
function family(concurrency = 1) {
  const mutex = limit("mutex", { key: "input.own", concurrency, while: "open" });
  const child = workflow("child", { limits: [mutex] }, async (_ctx, { own }: Input) => own);
  const parent = workflow("parent", { limits: [mutex] }, async (ctx, { next }: Input) => {
    await ctx.step("begin", () => {});
    if (next === undefined) return ctx.waitForSignal<string>("go");
    await ctx.waitForSignal("go", { timeout: "1h" });
    return ctx.run(child, { own: next });
  });
  return { mutex, child, parent };
}

async function causeOf(failed: Promise<unknown>): Promise<LimitCycleError> {
  const error = (await failed.catch((thrown: unknown) => thrown)) as RunFailedError;
  let cause: unknown = error.cause;
  while (cause instanceof Error && !(cause instanceof LimitCycleError) && cause.cause !== undefined)
    cause = cause.cause;
  expect(cause).toBeInstanceOf(LimitCycleError);
  return cause as LimitCycleError;
}

describe("a cycle of runs that hold their slots until they end", () => {
  forEachStore((kind) => {
    const database = databaseFor(kind);

    test("is refused: the child that needs its parent's slot fails, with an error that names the chain", async () => {
      const { child, parent } = family();
      const w = await database.world();
      keepWorking(await w.worker([parent]), await w.worker([child]));
      const run = await w.pawl.start(parent, { own: "a", next: "a" });
      await until(async () => (await run.status()) === "waiting");
      await run.signal("go");
      const cause = await causeOf(run.result());
      const [failed] = (await w.pawl.runs({ workflow: child })).runs;
      expect(cause).toMatchObject({ code: "LIMIT_CYCLE", limit: "mutex", key: "a" });
      expect(cause.chain).toEqual([
        `run ${failed?.id} waits for a slot of the limit "mutex" for the key "a", which run ${run.id} holds until it ends`,
        `run ${run.id} waits for its child ${failed?.id}`,
      ]);
      expect(await w.pawl.run(failed?.id as string).get()).toMatchObject({
        status: "failed",
        startedAt: null,
        error: { code: "LIMIT_CYCLE" },
      });
      expect((await w.pawl.verify()).differences).toEqual([]);
      await until(async () => (await w.store.limits.slots({ afterRunId: null }, 10)).length === 0);
    });

    test("of two families is refused: one child fails, and the others go on", async () => {
      const { child, parent } = family();
      const w = await database.world();
      keepWorking(await w.worker([parent, child]), await w.worker([parent, child]));
      const runs = [
        await w.pawl.start(parent, { own: "a", next: "b" }),
        await w.pawl.start(parent, { own: "b", next: "a" }),
      ];
      await until(async () => (await Promise.all(runs.map((run) => run.status()))).every((s) => s === "waiting"));
      await Promise.all(runs.map((run) => run.signal("go")));
      const ended = await Promise.allSettled(runs.map((run) => run.result()));
      expect(ended.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const failed = ended.findIndex(({ status }) => status === "rejected");
      const { chain } = await causeOf((runs[failed] as (typeof runs)[number]).result());
      expect(chain).toHaveLength(4);
    });
  }, everyStore);

  test("a lane with several slots is no cycle while one of its holders can go on", async () => {
    const { child, parent } = family(2);
    const t = await start(parent, child);
    const other = await t.pawl.start(parent, { own: "a" });
    const run = await t.pawl.start(parent, { own: "a", next: "a" });
    await t.settle();
    await run.signal("go");
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await other.signal("go", "done");
    await t.settle();
    expect(await run.result()).toBe("a");
  });

  test("a lane whose holders all wait for children in it is a cycle", async () => {
    const { child, parent } = family(2);
    const t = await start(parent, child);
    const runs = [
      await t.pawl.start(parent, { own: "a", next: "a" }),
      await t.pawl.start(parent, { own: "a", next: "a" }),
    ];
    await t.settle();
    for (const run of runs) await run.signal("go");
    await t.settle();
    const statuses = await Promise.all(runs.map((run) => run.status()));
    expect(statuses.sort()).toEqual(["completed", "failed"]);
  });

  test("a parent that has something else to wait for is left alone", async () => {
    const mutex = limit("mutex", { concurrency: 1, while: "open" });
    const child = workflow("child", { limits: [mutex] }, async () => "child");
    const parent = workflow("parent", { limits: [mutex] }, async (ctx) => {
      const { name } = await ctx.race({ child: ctx.run(child), late: ctx.sleep("patience", "1h") });
      return name;
    });
    const t = await start(parent, child);
    const run = await t.pawl.start(parent);
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await t.advance("1h");
    expect(await run.result()).toBe("late");
  });

  test("the children of a map are refused as well, and a grandparent's slot counts", async () => {
    const mutex = limit("mutex", { concurrency: 1, while: "open" });
    const leaf = workflow("leaf", { limits: [mutex] }, async (_ctx, n: number) => n);
    const middle = workflow("middle", (ctx) => ctx.map(leaf, [1, 2, 3]));
    const root = workflow("root", { limits: [mutex] }, (ctx) => ctx.run(middle));
    const t = await start(root, middle, leaf);
    const run = await t.pawl.start(root);
    await t.settle();
    expect(await run.status()).toBe("failed");
    expect(await t.pawl.internals.store.limits.slots({ afterRunId: null }, 10)).toEqual([]);
  });

  test("a cycle that the process did not live to see is found by the next worker", async () => {
    const { child, parent } = family();
    const w = await world();
    const first = await w.worker([parent, child]);
    const run = await w.pawl.start(parent, { own: "a", next: "a" });
    await first.settle();
    await run.signal("go");
    w.store.limits.refuse = () => new Promise(() => {});
    void first.settle();
    await until(async () => (await w.pawl.runs({ workflow: child })).runs.length === 1);
    await until(async () => (await run.status()) === "waiting");
    await first.kill();
    Reflect.deleteProperty(w.store.limits, "refuse");
    keepWorking(await w.worker([parent, child]));
    await causeOf(run.result());
  });
});
