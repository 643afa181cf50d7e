/** Limits that a release changes while runs wait for them or hold their slots, on every store. */
import { limit, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { everyStore, forEachStore, testDatabase } from "../support/databases.js";
import { keepWorking, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

forEachStore((kind) => {
  async function newWorld() {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    return world(kind, url);
  }

  test("runs that wait for a limit go on when their workflow has lost it, also after a worker that had it", async () => {
    const few = limit("few", { concurrency: 1 });
    const { open, opened } = gate();
    onTestFinished(() => open());
    const before = workflow("wf", { limits: [few] }, (ctx, _: number) => ctx.step("work", () => opened));
    const after = workflow("wf", async (ctx, n: number) => ctx.step("work", () => n));
    const w = await newWorld();
    const old = await w.worker([before]);
    keepWorking(old);
    const runs = await w.pawl.startMany(before, [1, 2, 3]);
    await until(async () => {
      const explained = await Promise.all(runs.map((run) => run.explain()));
      return explained.filter(({ because }) => because === "limited").length === 2;
    });
    keepWorking(await w.worker([after], { housekeeping: "100ms" }));
    await until(async () => (await Promise.all(runs.map((run) => run.status()))).includes("completed"));
    await old.kill();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a run that holds a slot until its end goes on when the limit is held by executed runs only", async () => {
    const release = (heldWhile: "open" | "executing") =>
      workflow("wf", { limits: [limit("mutex", { concurrency: 1, while: heldWhile })] }, async (ctx, n: number) => {
        await ctx.sleep("nap", "1 hour");
        return n;
      });
    const w = await newWorld();
    const before = release("open");
    const old = await w.worker([before]);
    const run = await w.pawl.start(before, 1);
    await w.settleAll();
    expect(await run.status()).toBe("waiting");
    await old.kill();
    keepWorking(await w.worker([release("executing")]));
    w.clock.moveTo(w.clock.read() + 3_600_000);
    expect(await run.result()).toBe(1);
    expect(await w.store.limits.slots({ lane: "mutex\t" }, 10)).toEqual([]);
  });
}, everyStore);
