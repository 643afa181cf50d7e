// W3: how long does a step take when nothing else is running? One run, one step after the other.

import { workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

export const oneRunAlone = {
  id: "W3",
  unit: "step",
  sizes: { full: 1000, quick: 500 },
  figures: { "W3 ms / step, one run alone": { limit: "oneRow", as: "multiple" } },

  async measure({ pawl, database }, steps) {
    const chain = workflow("w3_chain", async (ctx) => {
      for (let step = 1; step <= steps; step += 1) await ctx.step(`step_${step}`, () => ({ ok: true, total: step }));
    });
    return withWorker(pawl, [chain], async () => {
      const cost = await measureCost(database, async () => {
        const run = await pawl.start(chain);
        await run.result();
      });
      return { cost, units: steps, figures: { "W3 ms / step, one run alone": cost.ms / steps } };
    });
  },
};
