// The runner: every chosen workload, on every chosen store, in several rounds. `npm run bench` builds the library and
// finds the servers first; with both at hand this file can be run by itself, under a profiler for instance:
//
//   node --cpu-prof bench/main.mjs --store postgres --only W2

import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { connect } from "pawl";
import { readArguments } from "./arguments.mjs";
import { measureLimits, ratio } from "./limits.mjs";
import { printStore } from "./report.mjs";
import { median, summary } from "./statistics.mjs";
import { openDatabase } from "./stores/open.mjs";
import { checkpoints } from "./workloads/checkpoints.mjs";
import { children } from "./workloads/children.mjs";
import { graphNodes } from "./workloads/graph-nodes.mjs";
import { limitedRuns } from "./workloads/limited-runs.mjs";
import { manySteps } from "./workloads/many-steps.mjs";
import { oneRunAlone } from "./workloads/one-run-alone.mjs";
import { oneStepRuns } from "./workloads/one-step-runs.mjs";
import { parallelSteps } from "./workloads/parallel-steps.mjs";
import { startLatency } from "./workloads/start-latency.mjs";

const workloads = [
  oneStepRuns,
  manySteps,
  oneRunAlone,
  startLatency,
  parallelSteps,
  children,
  checkpoints,
  graphNodes,
  limitedRuns,
];

const { stores, workloads: ids, rounds, quick, json } = readArguments(process.argv.slice(2));
const chosen = workloads.filter(({ id }) => ids.includes(id));
const size = quick ? "quick" : "full";

console.log(`${cpus().length} cores, Node ${process.version}; ${rounds} round(s), client and worker in one process.`);
const results = [];
for (const name of stores) {
  const result = await benchStore(name);
  printStore(result);
  results.push(result);
}
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ node: process.version, rounds, results }, null, 2)}\n`);

async function benchStore(name) {
  const database = await openDatabase(name);
  try {
    const pawl = await connect(database.url);
    try {
      return { store: name, label: database.label, ...(await benchRounds({ pawl, database })) };
    } finally {
      await pawl.close();
    }
  } finally {
    await database.close();
  }
}

/** Each round measures everything, including the machine's limits, so that compared figures were measured together. */
async function benchRounds(target) {
  // Warm-up, not counted: connections open, statements are prepared, code is compiled.
  await measureLimits(target.database, "quick");
  for (const workload of chosen) await workload.measure(target, Math.ceil(workload.sizes.quick / 4));
  const measured = [];
  for (let round = 0; round < rounds; round += 1) {
    const limits = await measureLimits(target.database, size);
    const outcomes = new Map();
    for (const workload of chosen) outcomes.set(workload, await workload.measure(target, workload.sizes[size]));
    measured.push({ limits: withTheirOwn(limits, outcomes), outcomes });
  }
  return {
    figures: chosen.flatMap((workload) => figuresOf(workload, measured)),
    limits: limitsOf(measured),
    costs: chosen.flatMap((workload) => costsOf(workload, measured)),
  };
}

/** A workload may return a limit that it measured between its parts. */
function withTheirOwn(limits, outcomes) {
  return limits === null ? null : Object.assign({}, limits, ...[...outcomes.values()].map((outcome) => outcome.limits));
}

function figuresOf(workload, measured) {
  return Object.entries(workload.figures).flatMap(([name, comparison]) => {
    const values = measured.map(({ outcomes }) => outcomes.get(workload).figures[name]);
    if (values.includes(undefined)) return [];
    const ratios = measured.map(({ limits }, round) => ratio(values[round], comparison, limits));
    return [
      {
        name,
        ...summary(values),
        values,
        ...comparison,
        ...(ratios[0] === undefined ? {} : { ratio: median(ratios) }),
      },
    ];
  });
}

function limitsOf(measured) {
  if (measured[0].limits === null) return null;
  const names = Object.keys(measured[0].limits);
  return Object.fromEntries(names.map((name) => [name, summary(measured.map(({ limits }) => limits[name]))]));
}

/**
 * Per step, run or child. The minimum of the rounds is used, because other work of the machine and the server only
 * adds.
 */
function costsOf(workload, measured) {
  const perUnit = measured.flatMap(({ outcomes }) => {
    const { cost, units } = outcomes.get(workload);
    return cost === undefined ? [] : [Object.entries(cost).map(([name, value]) => [name, value / units])];
  });
  if (perUnit.length === 0) return [];
  const least = perUnit[0].map(([name], index) => [name, Math.min(...perUnit.map((round) => round[index][1]))]);
  return [{ id: workload.id, unit: workload.unit, ...Object.fromEntries(least) }];
}
