/** Processes that die while runs find their limit full: each start ends or runs once, and no slot is lost. */
import { limit, workflow } from "pawl";
import { expect, test } from "vitest";
import { everyStore, forEachStore } from "../support/databases.js";
import { databaseFor, keepWorking, start } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("a worker that dies after it has refused runs leaves them to the next, which ends them without a slot", async () => {
    const one = limit("one", { concurrency: 1, while: "open", onFull: "skip" });
    const begun: string[] = [];
    const wf = workflow("wf", { limits: [one] }, async (ctx, name: string) => {
      await ctx.step("begin", () => void begun.push(name));
      await ctx.waitForSignal("go");
    });
    const w = await database.world();
    const first = await w.worker([wf]);
    const holder = await w.pawl.start(wf, "holder");
    await first.settle();
    const { commit, limits } = w.store;
    let admitted = 0;
    const admit = limits.admit.bind(limits);
    limits.admit = async (request) => {
      const result = await admit(request);
      if (result.kind === "admitted") admitted += result.tasks.length;
      if (admitted > 0) first.freeze();
      return result;
    };
    const late = await w.pawl.startMany(wf, ["b", "c"]);
    void first.settle();
    await until(() => admitted > 0);
    await first.kill();
    Reflect.deleteProperty(limits, "admit");
    expect(w.store.commit).toBe(commit);
    keepWorking(await w.worker([wf]));
    await until(async () =>
      (await Promise.all(late.map((run) => run.status()))).every((status) => status === "canceled"),
    );
    expect(await late[0]?.get()).toMatchObject({ startedAt: null, error: { code: "LIMIT_SKIPPED" } });
    expect(await holder.status()).toBe("waiting");
    expect(begun).toEqual(["holder"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
}, everyStore);

test("crashTest takes a run that its limit refuses through a crash at every commit", async () => {
  const none = limit("none", { key: "input", rate: { limit: 1, per: "1 day" }, onFull: "skip" });
  const child = workflow("child", { limits: [none] }, async (_ctx, _family: string) => "begun");
  const parent = workflow("parent", async (ctx) => {
    const ends = [];
    for (const name of ["first", "second"])
      ends.push(await ctx.run(child, ctx.runId, { name }).catch((error: { code?: string }) => error.code));
    return ends;
  });
  const t = await start(parent, child);
  await t.crashTest(parent, undefined);
});
