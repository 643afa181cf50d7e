// W5s: a thousand steps of one run at once.

import { workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

export const parallelSteps = {
  id: "W5s",
  unit: "step",
  sizes: { full: 1000, quick: 1000 },
  figures: { "W5s 1000 parallel steps, s": {} },

  async measure({ pawl, database }, steps) {
    const fanOut = workflow("w5s_fan_out", async (ctx) => {
      const all = Array.from({ length: steps }, (_, n) => ctx.step(`part_${n}`, () => ({ ok: true, total: n })));
      await Promise.all(all);
    });
    return withWorker(pawl, [fanOut], async () => {
      const cost = await measureCost(database, async () => {
        const run = await pawl.start(fanOut);
        await run.result();
      });
      return { cost, units: steps, figures: { "W5s 1000 parallel steps, s": cost.ms / 1000 } };
    });
  },
};
