// What is measured, the same for every contender. Each workload returns a figure and the number of units (runs, steps,
// children).

import { setTimeout as sleep } from "node:timers/promises";
import { percentile } from "../statistics.mjs";
import { nowMs, seen } from "./handlers.mjs";

const numbers = (count) => Array.from({ length: count }, (_, n) => n);

/**
 * `better`: the direction in which a figure is faster. `unit`: what the costs are divided by; W4 mostly waits, so it
 * has none.
 */
export const workloads = [
  {
    id: "W1",
    figure: "one-step workflows / s",
    better: "more",
    unit: "run",
    steps: (runs) => runs,
    runs: (runs) => ({ one_step: runs }),
    work: (contender, runs) => contender.runMany("one_step", numbers(runs)),
    value: (ms, runs) => (1000 * runs) / ms,
  },
  {
    id: "W2",
    figure: "steps / s, runs of 10 steps side by side",
    better: "more",
    unit: "step",
    steps: (runs) => runs * 10,
    runs: (runs) => ({ ten_steps: runs }),
    work: (contender, runs) => contender.runMany("ten_steps", numbers(runs)),
    value: (ms, runs) => (1000 * runs * 10) / ms,
  },
  {
    id: "W3",
    figure: "ms / step, one run alone",
    better: "less",
    unit: "step",
    steps: (steps) => steps,
    runs: () => ({ chain: 1 }),
    work: (contender, steps) => contender.run("chain", steps),
    value: (ms, steps) => ms / steps,
  },
  {
    id: "W4",
    figure: "start → step entered, p50 ms",
    better: "less",
    steps: (count) => count,
    runs: (count) => ({ enter: count }),
    work: startOneByOne,
    value: () => percentile(seen.latencies, 0.5),
  },
  {
    id: "W5s",
    figure: "1000 parallel steps of one run, s",
    better: "less",
    unit: "step",
    steps: (steps) => steps,
    runs: () => ({ fan_out: 1 }),
    work: (contender, steps) => contender.run("fan_out", steps),
    value: (ms) => ms / 1000,
  },
  {
    id: "W5c",
    figure: "1000 children of one run, s",
    better: "less",
    unit: "child",
    steps: (children) => children,
    runs: (children) => ({ parent: 1, child: children }),
    work: (contender, children) => contender.run("parent", children),
    value: (ms) => ms / 1000,
  },
  {
    id: "W8",
    figure: "runs / s, one at a time of each of 100 keys",
    better: "more",
    unit: "run",
    steps: (runs) => runs,
    runs: (runs) => ({ keyed: runs }),
    work: (contender, runs) =>
      contender.runMany(
        "keyed",
        numbers(runs).map((n) => ({ n, key: `key-${n % 100}` })),
      ),
    value: (ms, runs) => (1000 * runs) / ms,
  },
];

/**
 * The pause between two starts lets the worker become idle, because a start during its last commit would wait for that.
 * It is short, so that caches stay warm, and random, so that a contender that polls is not hit at the same moment of
 * its interval.
 */
async function startOneByOne(contender, count) {
  for (let n = 0; n < count; n += 1) {
    await contender.run("enter", nowMs());
    await sleep(1 + Math.random() * 5);
  }
}
