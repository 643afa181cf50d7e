/** `verify` reports nothing for a sound database, whatever it contains and whatever happens meanwhile. */
import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { everyKindOfRun } from "./every-kind-of-run.js";

async function emptyWorld(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  return world(kind, database.url);
}

forEachStore((kind) => {
  test("a database with every kind of run has no difference, with its worker running and after it stopped", async () => {
    const { w, worker, runs } = await everyKindOfRun(kind);
    const statusOf = async (run: { status(): Promise<string> } | undefined) => run?.status();
    const some = [runs.done[0], runs.sleeping[0], runs.failed[0], runs.crowd[0], runs.stored, runs.pausedUnbegun];
    expect(await Promise.all([...some, runs.imported, runs.built].map(statusOf))).toEqual([
      "completed",
      "waiting",
      "failed",
      "waiting",
      "pending",
      "paused",
      "waiting",
      "completed",
    ]);
    const { differences, found, runs: count, events } = await w.pawl.verify();
    expect(differences).toEqual([]);
    expect(found).toBe(0);
    const all = (await w.pawl.runs({ limit: 1_000 })).runs;
    expect(count).toBe(all.length);
    const logs = await Promise.all(all.map(({ id }) => w.pawl.run(id).history()));
    expect(events).toBe(logs.flat().length);
    expect(await w.pawl.verify(runs.done[0]?.id)).toMatchObject({ runs: 1, differences: [] });
    await worker.worker.stop();
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a run in execution has no difference, nor has one whose worker died in the middle of a step", async () => {
    const w = await emptyWorld(kind);
    const stuck = workflow("stuck", async (ctx) => {
      await ctx.step("first", () => 1);
      await ctx.step("second", () => new Promise(() => {}));
    });
    const worker = await w.worker([stuck]);
    const run = await w.pawl.start(stuck);
    void worker.settle();
    await until(async () => (await run.history()).length >= 2);
    expect(await run.status()).toBe("running");
    expect((await w.pawl.verify()).differences).toEqual([]);
    await worker.kill();
    expect(await run.status()).not.toBe("running");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("runs that change while they are verified cause no false reports", async () => {
    const w = await emptyWorld(kind);
    const leaf = workflow("leaf", async (ctx, n: number) => ctx.step("x", () => n));
    const lively = workflow("lively", async (ctx, n: number) => {
      await ctx.step("a", () => 1);
      await ctx.map(leaf, [1, 2, 3, 4], { concurrency: 2 });
      await ctx.run(leaf, n);
    });
    const worker = await w.worker([lively, leaf], { poll: 50 });
    let isOver = false;
    const work = (async () => {
      for (let n = 0; !isOver; n += 1) await (await worker.pawl.start(lively, n)).result();
    })();
    for (let times = 0; times < 3; times += 1) expect((await w.pawl.verify()).differences).toEqual([]);
    isOver = true;
    await work;
  });
});
