/** Many concurrent runs in one worker. How many of them share a commit depends on timing. */
import { workflow } from "pawl";
import type { Operation } from "./operations.js";

const runs = 100;
const stepsPerRun = 10;

const manySteps: Operation = async (meter) => {
  const inputs = Array.from({ length: runs }, (_, n) => n + 100);
  const busy = workflow(meter.newName(), async (ctx, n: number) => {
    for (let step = 0; step < stepsPerRun; step += 1) await ctx.step(`step_${step}`, () => n);
    return n;
  });
  const { pawl } = await meter.serve([busy]);
  return meter.cost(async () => {
    await pawl.startMany(busy, inputs);
    await meter.untilReleased();
  });
};

const manyChildren: Operation = async (meter) => {
  const items = Array.from({ length: runs }, (_, n) => n + 100);
  const part = workflow(meter.newName(), async (_ctx, n: number) => n);
  let counted = 0;
  const whole = workflow(meter.newName(), async (ctx) => {
    counted = (await ctx.map(part, items)).length;
  });
  const { pawl } = await meter.serve([whole, part]);
  return meter.cost(async () => {
    await pawl.start(whole);
    do await meter.untilReleased();
    while (counted === 0);
  });
};

export const concurrentRuns = {
  "100 runs of 10 steps": manySteps,
  "100 children of a map": manyChildren,
} satisfies Record<string, Operation>;
