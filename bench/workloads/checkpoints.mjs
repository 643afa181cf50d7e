// W6: how many items a second can a resumable step process, with a checkpoint after each? Awaited: the next item starts
// when the cursor is durable. Relaxed: it starts immediately. One run alone, and twenty concurrently.

import { Workflow } from "pawl";
import { measureCost } from "../cost.mjs";
import { withWorker } from "./with-worker.mjs";

const sideBySide = 20;
/** Relaxed, an item takes a few microseconds: fewer items would measure the start of their run. */
const relaxedTimes = 20;
/** Compared figures must be measured together, because the speed of the machine changes within seconds. */
const blocks = 4;

const sweeps = {
  "W6 awaited checkpoints / s, one run alone": { checkpoint: "awaited", runs: 1, times: 1 },
  "W6 … 20 runs side by side": { checkpoint: "awaited", runs: sideBySide, times: 1 / 4 },
  "W6 relaxed checkpoints / s, one run alone": { checkpoint: "relaxed", runs: 1, times: relaxedTimes },
  "W6 … relaxed, 20 runs side by side": { checkpoint: "relaxed", runs: sideBySide, times: relaxedTimes / 4 },
};
const [awaitedAlone] = Object.keys(sweeps);

export const checkpoints = {
  id: "W6",
  unit: "awaited checkpoint, alone",
  sizes: { full: 1000, quick: 500 },
  figures: Object.fromEntries(Object.keys(sweeps).map((name) => [name, { limit: "oneUpdate", as: "share" }])),

  async measure(target, size) {
    const { limits } = target.database;
    const items = Math.ceil(size / blocks);
    const costs = Object.fromEntries(Object.keys(sweeps).map((name) => [name, {}]));
    let updateMs = 0;
    for (let block = 0; block < blocks; block += 1) {
      for (const [name, { checkpoint, runs, times }] of Object.entries(sweeps)) {
        if (limits !== null) updateMs += await timed(() => limits.oneUpdate(items));
        add(costs[name], await sweep(target, { checkpoint, runs, items: Math.ceil(items * times) }));
      }
    }
    const rate = ([name, { runs, times }]) => (1000 * blocks * runs * Math.ceil(items * times)) / costs[name].ms;
    const updates = blocks * Object.keys(sweeps).length * items;
    return {
      cost: costs[awaitedAlone],
      units: blocks * items,
      figures: Object.fromEntries(Object.entries(sweeps).map((one) => [one[0], rate(one)])),
      ...(limits === null ? {} : { limits: { oneUpdate: (1000 * updates) / updateMs } }),
    };
  },
};

/** The cost of taking this many runs through this many items each. */
function sweep({ pawl, database }, { checkpoint, runs, items }) {
  let done = 0;
  class Sweep extends Workflow {
    static {
      this.options({ name: `w6_${checkpoint}` });
      this.resumableStep("sweep", { checkpoint }, (_, iter) => iter.over(range(items), () => (done += 1)));
    }
  }
  return withWorker(pawl, [Sweep], (worker) =>
    measureCost(database, async () => {
      await pawl.startMany(Sweep, Array(runs).fill(undefined));
      await worker.drained(() => done === runs * items);
    }),
  );
}

const range = (count) => Array.from({ length: count }, (_, n) => n);

async function timed(work) {
  const beganAt = performance.now();
  await work();
  return performance.now() - beganAt;
}

function add(sum, cost) {
  for (const [name, value] of Object.entries(cost)) sum[name] = (sum[name] ?? 0) + value;
}
