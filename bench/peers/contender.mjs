// One contender's turn, in a process of its own: it is opened, warmed up, measured and closed. The results are sent to
// the parent process (turn.mjs).
//
//   node contender.mjs <name> <workloads> <full or quick> [database]

import pg from "pg";
import { percentile } from "../statistics.mjs";
import { contenders } from "./contenders.mjs";
import { forget, seen } from "./handlers.mjs";
import { measure, postgresUsage } from "./usage.mjs";
import { workloads } from "./workloads.mjs";

const [name, ids, size, url] = process.argv.slice(2);
// Ctrl-C reaches every process of the terminal; the parent decides when this process ends, also by ending itself.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit(1));

const tell = (message) => new Promise((resolve) => process.send(message, resolve));
const runsSoFar = new Map();

try {
  await takeTurn();
  await tell({ kind: "done" });
  process.exit(0);
} catch (error) {
  await tell({ kind: "failed", reason: error.message || error.code || String(error) });
  process.exit(1);
}

async function takeTurn() {
  const adapter = await contenders.find((one) => one.name === name).load();
  const meter = await openMeter();
  const contender = { usage: () => postgresUsage(meter), ...(await adapter.open({ url, meter })) };
  await tell({ kind: "opened", settings: adapter.settings });
  const chosen = workloads.filter(({ id }) => ids.split(",").includes(id) && adapter.sizes[id]);
  const sizeOf = ({ id }) =>
    size === "full" || id.startsWith("W5") ? adapter.sizes[id] : Math.ceil(adapter.sizes[id] / 3);

  // Warm-up, not counted: connections open, statements are prepared, code is compiled.
  for (const workload of chosen) await checked(contender, workload, Math.ceil(sizeOf(workload) / 8));
  await contender.warmedUp?.();
  for (const workload of chosen) {
    const measured = await checked(contender, workload, sizeOf(workload));
    await tell({ kind: "measured", id: workload.id, ...measured });
    if (workload.id === "W4" && contender.latenciesElsewhere) {
      const times = await contender.latenciesElsewhere(sizeOf(workload));
      await tell({ kind: "measured", id: "W4x", value: percentile(times, 0.5) });
    }
  }
  await contender.close();
  await meter?.end();
}

/**
 * The figure of a workload, and the proof: every step ran once, and every run is complete in the contender's own store.
 */
async function checked(contender, workload, count) {
  forget();
  const { ms, cost } = await measure(contender, () => workload.work(contender, count));
  const steps = workload.steps(count);
  if (seen.entered !== steps) throw new Error(`${workload.id}: ${seen.entered} steps ran, not ${steps}.`);
  for (const [run, runs] of Object.entries(workload.runs(count))) {
    const expected = (runsSoFar.get(run) ?? 0) + runs;
    runsSoFar.set(run, expected);
    const completed = await contender.completed(run);
    if (completed !== expected) throw new Error(`${workload.id}: ${completed} runs are complete, not ${expected}.`);
  }
  const units = workload.unit === "run" ? count : steps;
  const value = workload.value(ms, count);
  return workload.unit === undefined ? { value, ms } : { value, ms, units, cost };
}

/** A connection that only queries costs and completed runs. */
async function openMeter() {
  if (url === undefined) return undefined;
  const meter = new pg.Client({ connectionString: url });
  await meter.connect();
  return meter;
}
