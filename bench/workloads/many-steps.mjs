// W2: how many steps a second, with 500 concurrent workflows of 10 steps each?

import { workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

const stepsPerRun = 10;

export const manySteps = {
  id: "W2",
  unit: "step",
  sizes: { full: 1000, quick: 500 },
  figures: { "W2 steps / s, 500 runs side by side": { limit: "hundredRows", as: "share" } },

  async measure({ pawl, database }, runs) {
    let entered = 0;
    const tenSteps = workflow("w2_ten_steps", async (ctx, n) => {
      for (let step = 1; step <= stepsPerRun; step += 1) {
        await ctx.step(`step_${step}`, () => {
          entered += 1;
          return { ok: true, total: n };
        });
      }
    });
    const steps = runs * stepsPerRun;
    return withWorker(pawl, [tenSteps], async (worker) => {
      const inputs = Array.from({ length: runs }, (_, n) => n);
      const cost = await measureCost(database, async () => {
        await pawl.startMany(tenSteps, inputs);
        await worker.drained(() => entered === steps);
      });
      return { cost, units: steps, figures: { "W2 steps / s, 500 runs side by side": (1000 * steps) / cost.ms } };
    });
  },
};
