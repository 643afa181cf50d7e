/** A run and its retry are pruned together, because the retry may use results of the first run's children. */
import { PermanentError, workflow } from "pawl";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const day = 86_400_000;
let broken = true;
beforeEach(() => {
  broken = true;
});
const leaf = workflow("leaf", (ctx, n: number) => ctx.step("double", () => n * 2));
const tree = workflow("tree", async (ctx) => {
  const doubled = await ctx.map(leaf, [1, 2, 3]);
  await ctx.step("flaky", () => {
    if (broken) throw new PermanentError("no");
  });
  await ctx.waitForSignal("go");
  return [...doubled];
});
const parentOfTree = workflow("above", (ctx) => ctx.run(tree, undefined).catch(() => "gave up"));

forMemoryAnd("sqlite", (kind) => {
  async function worldOnStore() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    let working = await w.worker([leaf, tree, parentOfTree]);
    const settle = () => working.settle();
    /** Does the work while no worker is running that might act before the test. */
    const withoutWorker = async <T>(work: () => Promise<T>): Promise<T> => {
      await working.worker.stop();
      const result = await work();
      working = await w.worker([leaf, tree, parentOfTree]);
      return result;
    };
    const advanceDays = (days: number) => w.clock.moveTo(w.clock.read() + days * day);
    const count = async () => (await w.pawl.runs({ limit: 100 })).runs.length;
    return { ...w, settle, withoutWorker, advanceDays, count };
  }

  test("the first run and its children are kept for as long as its retry, and then all of them are pruned", async () => {
    const w = await worldOnStore();
    const run = await w.pawl.start(tree);
    await w.settle();
    const retried = await run.retry();
    await w.settle();
    expect(await retried.status()).toBe("failed");
    broken = false;
    const third = await retried.retry();
    await w.settle();
    w.advanceDays(100);
    expect(await w.pawl.prune({ olderThan: "30 days" })).toEqual({ runs: 0, trees: 0 });
    await third.signal("go");
    await w.settle();
    expect(await third.result()).toEqual([2, 4, 6]);
    w.advanceDays(20);
    expect(await w.pawl.prune({ olderThan: "30 days" })).toEqual({ runs: 0, trees: 0 });
    // There are only the children of the first run: they were not run again.
    expect(await w.count()).toBe(1 + 3 + 1 + 1);
    w.advanceDays(20);
    expect(await w.pawl.prune({ olderThan: "30 days", limit: 1 })).toEqual({ runs: 6, trees: 1 });
    expect(await w.count()).toBe(0);
  });

  test("the retry of a run that had a parent is kept with the parent's tree, and pruned with it", async () => {
    const w = await worldOnStore();
    const parentRun = await w.pawl.start(parentOfTree);
    await w.settle();
    expect(await parentRun.result()).toBe("gave up");
    const failed = (await w.pawl.runs({ workflow: tree })).runs[0]?.id as string;
    broken = false;
    const retried = await w.pawl.run(failed).retry();
    await w.settle();
    w.advanceDays(100);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 0, trees: 0 });
    await retried.signal("go");
    await w.settle();
    expect(await retried.result()).toEqual([2, 4, 6]);
    w.advanceDays(2);
    // The retry is not pruned alone: without it, the first run could be retried once more.
    expect(await w.pawl.prune({ olderThan: "1 day", workflow: tree })).toEqual({ runs: 0, trees: 0 });
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 6, trees: 1 });
    expect(await w.count()).toBe(0);
  });

  test("a retry whose first run was deleted is paused, and pruned like any other run", async () => {
    const w = await worldOnStore();
    const run = await w.pawl.start(tree);
    await w.settle();
    const retried = await w.withoutWorker(async () => {
      const retry = await run.retry();
      await w.store.maintenance.deleteRuns([run.id]);
      return retry;
    });
    await w.settle();
    expect(await retried.get()).toMatchObject({
      status: "paused",
      pauseReason: expect.stringContaining(`retries run ${run.id}, which no longer exists`),
    });
    await retried.cancel();
    await w.settle();
    expect(await retried.status()).toBe("canceled");
    w.advanceDays(2);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toMatchObject({ trees: 1 });
    expect(await errorOf(retried.get())).toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("a retry whose children's results were deleted is paused instead of returning empty results", async () => {
    const w = await worldOnStore();
    const run = await w.pawl.start(tree);
    await w.settle();
    const children = (await w.pawl.runs({ workflow: leaf })).runs.map(({ id }) => id);
    const retried = await w.withoutWorker(async () => {
      const retry = await run.retry();
      await w.store.maintenance.deleteRuns(children.slice(0, 1));
      return retry;
    });
    await w.settle();
    expect(await retried.get()).toMatchObject({
      status: "paused",
      pauseReason: '1 of the children of map "leaf" no longer exist, so their results cannot be read.',
    });
  });
});
