// W1: how many small workflows a second? Client and worker in one process; all are started at once.

import { workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

export const oneStepRuns = {
  id: "W1",
  unit: "run",
  sizes: { full: 5000, quick: 2000 },
  figures: { "W1 one-step workflows / s": { limit: "hundredRows", as: "share" } },

  async measure({ pawl, database }, size) {
    let entered = 0;
    const oneStep = workflow("w1_one_step", (ctx, n) =>
      ctx.step("charge", () => {
        entered += 1;
        return { ok: true, total: n };
      }),
    );
    return withWorker(pawl, [oneStep], async (worker) => {
      const inputs = Array.from({ length: size }, (_, n) => n);
      const cost = await measureCost(database, async () => {
        await pawl.startMany(oneStep, inputs);
        await worker.drained(() => entered === size);
      });
      return { cost, units: size, figures: { "W1 one-step workflows / s": (1000 * size) / cost.ms } };
    });
  },
};
