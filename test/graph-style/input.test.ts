/** When a step mutates its input, no other step sees the change, whether the run continues or is replayed. */
import { graph, type StepContext, step, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";

type Order = { lines: string[]; placed: Date };
const order = (): Order => ({ lines: ["a"], placed: new Date(0) });

const mutate = (input: Order) => {
  input.lines.push("spoilt");
  input.placed.setFullYear(3000);
};
const describeOrder = (input: Order) => `${input.lines.join(",")} ${input.placed.getTime()}`;

const mutating = step("spoils", (ctx: StepContext<Order>) => {
  mutate(ctx.input);
  return describeOrder(ctx.input);
});
const reading = step("looks", (ctx: StepContext<Order>) => describeOrder(ctx.input));
const shipping = graph("shipping", [mutating, reading.after(mutating)]);
const checked = graph("checked", [mutating, reading.after(mutating)], {
  input: z.object({ lines: z.array(z.string()), placed: z.date(), note: z.string().default("none") }),
});

class Shipping extends Workflow<unknown, Order, string> {
  static {
    this.step("spoils", (w) => mutate(w.input));
    this.step("looks", { skipIf: (w) => w.input.lines.length > 1 }, (w) => w.finish(describeOrder(w.input)));
  }
}

test.each([
  ["a graph", shipping],
  ["a graph whose schema completes its input", checked],
  ["a class", Shipping],
] as const)("a mutation of the input by one step is not seen by another, in %s", async (_, definition) => {
  const t = await testPawl({ workflows: [definition] });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(definition as typeof shipping, order());
  await t.speedrun(run);
  expect(await run.result()).toBe("a 0");
  expect((await run.get()).input).toMatchObject(order());
  await t.crashTest(definition as typeof shipping, order());
});

test("the input is the same object within one execution", async () => {
  const both = step("both", (ctx: StepContext<Order>) => {
    const { input } = ctx;
    return input === ctx.input;
  });
  const t = await testPawl({ workflows: [graph("same", [both])] });
  onTestFinished(() => t.close());
  const run = await t.pawl.workflow<Order, boolean>("same").trigger(order());
  await t.speedrun(run);
  expect(await run.result()).toBe(true);
});

test("a child gets its input as it was when the parent passed it, even if the parent mutates it later", async () => {
  const child = workflow("child", (ctx, input: Order) => ctx.step("see", () => describeOrder(input)));
  const parent = workflow("parent", async (ctx, input: Order) => {
    const handle = await ctx.start(child, input);
    mutate(input);
    return handle.result();
  });
  const t = await testPawl({ workflows: [parent, child] });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(parent, order());
  await t.speedrun(run);
  expect(await run.result()).toBe("a 0");
});
