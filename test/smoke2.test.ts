import { expect, test } from "vitest";
import { workflow } from "pawl";
import { testPawl } from "pawl/testing";

test("virtual time, children, map, crash at every commit", async () => {
  const child = workflow("child", async (ctx, n: number) => {
    await ctx.sleep("nap", "1 hour");
    return ctx.step("double", () => n * 2);
  });
  let fails = 0;
  const wf = workflow("wf", async (ctx, n: number) => {
    const a = await ctx.step("a", () => n + 1);
    await ctx.sleep("s", "2 days");
    const sig = await ctx.waitForSignal<{ x: number }>("go", { timeout: "7 days" });
    const flaky = await ctx.step("flaky", () => { if (fails++ < 2) throw new Error("no"); return "ok"; });
    const c = await ctx.run(child, 4);
    const m = await ctx.map(child, [1, 2, 3, 4, 5], { concurrency: 2 });
    const r = await ctx.race({ s: ctx.sleep("long", "3 days"), g: ctx.waitForSignal("never", { timeout: "1 day" }) });
    const both = await Promise.all([ctx.step("p", async () => 1), ctx.step("q", async () => 2)]);
    return { a, sig, both, flaky, c, m: [...m], r: r.name };
  });
  const t = await testPawl({ workflows: [wf, child] });
  const run = await t.pawl.start(wf, 1);
  await run.signal("go", { x: 5 });
  await t.speedrun(run);
  expect(await run.result()).toEqual({ a: 2, sig: { x: 5 }, both: [1, 2], flaky: "ok", c: 8, m: [2, 4, 6, 8, 10], r: "g" });
  expect((await t.pawl.verify()).differences).toEqual([]);
  const report = await t.crashTest(wf, 1, { setup: () => { fails = 0; }, drive: (r) => r.signal("go", { x: 5 }, { key: "k" }).catch(() => {}) });
  console.log(report);
  await t.close();
});
