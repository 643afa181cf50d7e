// W5c: a thousand children of one run.

import { workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

const child = workflow("w5c_child", (ctx, n) => ctx.step("part", () => ({ ok: true, total: n })));

export const children = {
  id: "W5c",
  unit: "child",
  sizes: { full: 1000, quick: 1000 },
  figures: { "W5c 1000 children, s": {} },

  async measure({ pawl, database }, count) {
    const parent = workflow("w5c_parent", async (ctx) => {
      const results = await ctx.map(
        child,
        Array.from({ length: count }, (_, n) => n),
      );
      return results.length;
    });
    return withWorker(pawl, [parent, child], async () => {
      const cost = await measureCost(database, async () => {
        const run = await pawl.start(parent);
        await run.result();
      });
      return { cost, units: count, figures: { "W5c 1000 children, s": cost.ms / 1000 } };
    });
  },
};
