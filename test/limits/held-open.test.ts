/** Slots that runs hold from their first execution to their end (`while: "open"`), on every store. */
import { limit, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { keepWorking, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

forEachStore((kind) => {
  /** Runs of one customer exclude each other from their first step to their end. */
  async function worldOfCustomers() {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const begun: string[] = [];
    const { open, opened } = gate();
    onTestFinished(() => open());
    const mutex = limit("mutex", { key: "input.customer", concurrency: 1, while: "open" });
    const wf = workflow("wf", { limits: [mutex] }, async (ctx, { name }: { customer: string; name: string }) => {
      await ctx.step("begin", async () => {
        begun.push(name);
        if (name === "slow") await opened;
      });
      if (name === "waits") await ctx.waitForSignal("go");
      if (name === "sleeps") await ctx.sleep("nap", "1 day");
    });
    const w = await world(kind, url);
    const start = (name: string) => {
      w.clock.moveTo(w.clock.read() + 1);
      return w.pawl.start(wf, { customer: "c", name });
    };
    const worker = async () => {
      const one = await w.worker([wf]);
      keepWorking(one);
      return one;
    };
    const inUse = async () => (await w.store.limits.slots({ lane: "mutex\tc" }, 10)).length;
    return { w, begun, start, worker, inUse, endSlow: open };
  }

  test("a run that waits keeps its slot, and gives it back when it ends", async () => {
    const { begun, start, worker, inUse } = await worldOfCustomers();
    await worker();
    const first = await start("waits");
    await until(async () => (await first.status()) === "waiting");
    const second = await start("next");
    await until(async () => (await second.explain()).because === "limited");
    expect(begun).toEqual(["waits"]);
    await first.signal("go");
    expect(await second.result()).toBe(undefined);
    expect(await inUse()).toBe(0);
  });

  test("a client that cancels a sleeping or paused run gives its slot to the next one at once", async () => {
    const { w, begun, start, worker, inUse } = await worldOfCustomers();
    await worker();
    const asleep = await start("sleeps");
    await until(async () => (await asleep.status()) === "waiting");
    const paused = await start("waits");
    const next = await start("next");
    await until(async () => (await next.explain()).because === "limited");
    await asleep.cancel();
    expect(await w.store.limits.slots({ runIds: [asleep.id] }, 10)).toEqual([]);
    await until(() => begun.includes("waits"));
    await until(async () => (await paused.status()) === "waiting");
    await paused.pause();
    await paused.cancel();
    await next.result();
    expect(begun).toEqual(["sleeps", "waits", "next"]);
    expect(await inUse()).toBe(0);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a run that a client cancels while it waits gives its slot back in the same commit", async () => {
    const { w, begun, start, worker, inUse } = await worldOfCustomers();
    const { freeze } = await worker();
    const first = await start("sleeps");
    await until(async () => (await first.status()) === "waiting");
    await until(async () => (await w.store.tasks([first.id]))[0]?.state === "parked");
    await first.pause("a look");
    const second = await start("next");
    await until(async () => (await second.explain()).because === "limited");
    freeze();
    await first.cancel("no longer needed");
    expect(await first.status()).toBe("canceled");
    expect(await inUse()).toBe(0);
    await worker();
    expect(await second.result()).toBe(undefined);
    expect(begun).toEqual(["sleeps", "next"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a run whose worker dies in its first step goes on with the slot that it holds", async () => {
    const { begun, start, worker, endSlow } = await worldOfCustomers();
    const { kill } = await worker();
    const run = await start("slow");
    await until(() => begun.length === 1);
    await kill();
    await worker();
    await until(() => begun.length === 2);
    endSlow();
    await run.result();
  });
}, everyStoreBriefly);
