// W8: what limits cost. Three times as in W1, but started by another client, so that no run is begun by the process that
// starts it: without a limit, with a limit over 1,000 keys, and with one lane that has one slot.

import { connect, limit, workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

const keys = 1_000;
const perKey = limit("w8_per_key", { key: "input.key", concurrency: 1 });
const single = limit("w8_single", { concurrency: 1 });
/** A lane with one slot executes one run after the other, so fewer of them are enough. */
const shareOfSingleRuns = 10;

export const limitedRuns = {
  id: "W8",
  unit: "run of 1,000 keys",
  sizes: { full: 5000, quick: 2000 },
  figures: {
    "W8 without a limit / s": {},
    "W8 1,000 keys, one slot each / s": {},
    "W8 the same, share of without": {},
    "W8 one lane, one slot / s": {},
  },

  async measure({ pawl, database }, size) {
    // Each client of the memory store has a store of its own, so there is no other client that could start runs.
    if (pawl.capabilities?.dialect === "memory" || database.url.startsWith("memory"))
      return { figures: {}, units: size };
    const starter = await connect(database.url);
    try {
      const measureRuns = (name, limits, count) => runOnce({ pawl, database, starter }, { name, limits, count });
      const free = await measureRuns("w8_free", [], size);
      const keyed = await measureRuns("w8_keyed", [perKey], size);
      const lane = await measureRuns("w8_lane", [single], Math.ceil(size / shareOfSingleRuns));
      return {
        cost: keyed.cost,
        units: size,
        figures: {
          "W8 without a limit / s": free.rate,
          "W8 1,000 keys, one slot each / s": keyed.rate,
          "W8 the same, share of without": keyed.rate / free.rate,
          "W8 one lane, one slot / s": lane.rate,
        },
      };
    } finally {
      await starter.close();
    }
  },
};

async function runOnce({ pawl, database, starter }, { name, limits, count }) {
  let entered = 0;
  const work = workflow(name, { limits }, (ctx, { n }) =>
    ctx.step("charge", () => {
      entered += 1;
      return { ok: true, total: n };
    }),
  );
  return withWorker(pawl, [work], async (worker) => {
    const inputs = Array.from({ length: count }, (_, n) => ({ n, key: n % keys }));
    const cost = await measureCost(database, async () => {
      await starter.startMany(work, inputs);
      await worker.drained(() => entered === count);
    });
    return { cost, rate: (1000 * count) / cost.ms };
  });
}
