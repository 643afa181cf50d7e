/** Overrides of limits, rates of runs, and slots that are held until the end of a run. */
import { limit, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { databaseFor, start } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const day = 24 * 3_600_000;

describe("an override", () => {
  test("is in force at once, is shown with author, reason and end, and ends by itself", async () => {
    const order: number[] = [];
    const api = limit("api", { rate: { limit: 1, per: "1h" } });
    const wf = workflow("wf", { limits: [api] }, async (_ctx, n: number) => void order.push(n));
    const w = await start(wf);
    await w.pawl.startMany(wf, [1, 2, 3, 4, 5, 6]);
    await w.settle();
    expect(order).toEqual([1]);
    const { override } = await w.pawl.limits.override("api", {
      rate: { limit: 60, per: "1h" },
      until: "90 minutes",
      reason: "their incident is over",
      by: "ada",
    });
    const until = new Date(w.clock.now.getTime() + 90 * 60_000);
    expect(override).toMatchObject({ by: "ada", reason: "their incident is over", until, rate: { limit: 60 } });
    expect((await w.pawl.limits.get("api"))?.override).toEqual(override);
    // The first run has taken an hour of the pace; then one begins each minute, until the override ends.
    await w.advance("61 minutes");
    expect(order).toEqual([1, 2, 3]);
    await w.pawl.limits.clearOverride("api");
    expect((await w.pawl.limits.list())[0]?.override).toBeNull();
    await w.advance("2 minutes");
    expect(order).toEqual([1, 2, 3, 4]);
    await w.advance("59 minutes");
    expect(order).toEqual([1, 2, 3, 4, 5]);
  });

  test("of an unknown limit, or that changes nothing, is refused", async () => {
    const w = await start(workflow("wf", async () => {}));
    const { limits } = w.pawl;
    expect(String(await errorOf(limits.override("nothing", { concurrency: 1 })))).toContain('no limit "nothing"');
    expect(String(await errorOf(limits.clearOverride("nothing")))).toContain('no limit "nothing"');
    expect(String(await errorOf(limits.override("x", {})))).toContain("changes nothing");
    expect(String(await errorOf(limits.override("x", { concurrency: 0 })))).toContain("at least 1");
    expect(String(await errorOf(limits.override("x", { rate: { limit: -1, per: "1m" } })))).toContain("from 1");
    expect(String(await errorOf(limits.override("x", { conccurency: 1 } as never)))).toContain("conccurency");
    expect(String(await errorOf(limits.override("x", { concurrency: 1, until: "soon" as never })))).toContain("soon");
  });
});

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("a limit that is held open lets one run of each customer be open, also while it sleeps or its worker dies", async () => {
    const order: string[] = [];
    const perCustomer = limit("per_customer", { key: "input.customer", concurrency: 1, while: "open" });
    const wf = workflow(
      "subscription",
      { limits: [perCustomer] },
      async (ctx, { customer, name }: { customer: string; name: string }) => {
        await ctx.step("begin", () => void order.push(`${name} begins`));
        await ctx.sleep("a while", "1 day");
        await ctx.step("end", () => void order.push(`${name} ends`));
        return customer;
      },
    );
    const w = await database.world();
    const first = await w.worker([wf]);
    await w.pawl.start(wf, { customer: "x", name: "x1" });
    await first.settle();
    await w.pawl.start(wf, { customer: "x", name: "x2" });
    await w.pawl.start(wf, { customer: "y", name: "y1" });
    await first.settle();
    expect(order).toEqual(["x1 begins", "y1 begins"]);
    const details = await w.pawl.limits.get("per_customer");
    expect(details?.lanes.map(({ key, inUse, waiting }) => [key, inUse, waiting])).toEqual([
      ["x", 1, 1],
      ["y", 1, 0],
    ]);
    await first.kill();
    const second = await w.worker([wf]);
    w.clock.moveTo(w.clock.now.getTime() + day);
    await second.settle();
    await second.settle();
    expect(order.slice(2).sort()).toEqual(["x1 ends", "x2 begins", "y1 ends"]);
    w.clock.moveTo(w.clock.now.getTime() + day);
    await second.settle();
    expect(order.at(-1)).toBe("x2 ends");
    expect((await w.pawl.limits.get("per_customer"))?.lanes).toEqual([]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a rate of runs lets one begin at each instant of its pace, in virtual time", async () => {
    const begun: number[] = [];
    const paced = limit("paced", { rate: { limit: 6, per: "1m", burst: 1 } });
    const w = await database.world();
    const wf = workflow("paced_wf", { limits: [paced] }, async () => void begun.push(w.clock.now.getTime()));
    const { settle } = await w.worker([wf]);
    const from = w.clock.now.getTime();
    await w.pawl.startMany(wf, Array(5).fill(undefined));
    while (begun.length < 5) {
      const nextAt = await settle();
      if (nextAt !== null) w.clock.moveTo(nextAt);
    }
    expect(begun.map((at) => Math.round((at - from) / 1_000))).toEqual([0, 0, 10, 20, 30]);
  });
});
