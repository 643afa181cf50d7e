import { expect, test } from "vitest";
import { connect, workflow } from "pawl";

test("a workflow with a step, a short sleep and a signal completes", async () => {
  const pawl = await connect("memory:");
  const wf = workflow("wf", async (ctx, n: number) => {
    const a = await ctx.step("a", () => n + 1);
    await ctx.sleep("s", 30);
    const sig = await ctx.waitForSignal<{ x: number }>("go");
    const both = await Promise.all([ctx.step("p", async () => 1), ctx.step("q", async () => 2)]);
    return { a, sig, both };
  });
  const worker = pawl.worker({ workflows: [wf] });
  await worker.start();
  const run = await pawl.start(wf, 1);
  await run.signal("go", { x: 5 });
  const result = await run.result({ timeout: "5s" });
  expect(result).toEqual({ a: 2, sig: { x: 5 }, both: [1, 2] });
  console.log((await run.history()).map((e) => `${e.seq} ${e.type} ${e.node ?? ""}`).join("\n"));
  expect((await pawl.verify()).differences).toEqual([]);
  await pawl.close();
});
