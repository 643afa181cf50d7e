// Worker processes: what do more of them add? The runs are in the queue and the processes are warm before the clock
// starts. The CPU shows the limit: when all cores are busy, more processes cannot help.

import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "pawl";
import { cpuBetween } from "../cost.mjs";
import { asNumber, printTable } from "../report.mjs";
import { nowMs, startProcess } from "./child.mjs";
import { summarise } from "./figures.mjs";
import { quiet } from "./quiet.mjs";
import { checkCompleted, newestAt, unitsOf, workOf, works } from "./work.mjs";

const cores = cpus().length;
const counts = [1, 2, 4];
/** More runs than elsewhere, because the clock must not stop before all processes have started. */
const factor = 2;

const figures = {
  rate: "rate / s",
  nodeUs: "µs CPU, Node",
  serverUs: "µs CPU, server",
  nodeCores: "cores busy, Node",
  serverCores: "cores busy, server",
};

export const processes = {
  id: "processes",
  title: "Worker processes",
  rounds: { full: 3, quick: 1 },

  async measure({ storeName, openDatabase, size, rounds }) {
    const measured = Object.keys(works).flatMap((id) => counts.map((count) => ({ id, count, rows: [] })));
    for (let round = 0; round < rounds; round += 1) {
      for (const count of counts) {
        const found = await measureProcesses(storeName, openDatabase, count, size);
        for (const { id, rows } of measured.filter((one) => one.count === count)) rows.push(found[id]);
      }
    }
    return measured.map(({ id, count, rows }) => ({
      id,
      processes: count,
      unit: works[id].unit,
      ...summarise(rows, Object.keys(figures)),
    }));
  },

  print(rows) {
    const known = Object.keys(figures).filter((name) => rows[0][name] !== undefined);
    printTable(
      [`of ${cores} cores`, ...known.map((name) => figures[name]), "limit"],
      rows.map((row) => [
        `${row.id}, ${row.processes} process${row.processes === 1 ? "" : "es"}, per ${row.unit}`,
        ...known.map((name) => asNumber(row[name].median)),
        limitOf(row),
      ]),
    );
  },
};

const busy = 0.85;

/** More processes help only while neither the CPU nor the disk nor a lock is the bottleneck. */
function limitOf({ processes: count, nodeCores, serverCores }) {
  const all = nodeCores.median + (serverCores?.median ?? 0);
  if (all >= busy * cores) return "all cores";
  return nodeCores.median >= busy * count ? "the process" : "waiting";
}

async function measureProcesses(storeName, openDatabase, count, size) {
  const database = await openDatabase(storeName);
  const pawl = await connect(database.url, { logger: quiet });
  const script = new URL("worker-process.mjs", import.meta.url);
  const children = Array.from({ length: count }, () => startProcess(script, [database.url]));
  try {
    for (const child of children) await child.next("ready");
    const rows = {};
    for (const [id, work] of Object.entries(works))
      rows[id] = await measureWork({ pawl, database, children }, work, factor * work.runs[size]);
    for (const child of children) await child.stop();
    return rows;
  } finally {
    for (const child of children) await child.kill();
    await pawl.close();
    await database.close();
  }
}

async function measureWork({ pawl, database, children }, work, runs) {
  const since = await newestAt(database);
  const inputs = Array.from({ length: runs }, () => ({ steps: work.steps }));
  await pawl.startMany(workOf(), inputs);
  const before = await database.cpuUs();
  for (const child of children) child.latest("idle");
  const beganAt = nowMs();
  for (const child of children) child.say("work");
  const reports = await untilAllIdle(children, runs * work.steps);
  const after = await database.cpuUs();
  await checkCompleted(database, since, runs);
  for (const child of children) {
    child.say("rest");
    await child.next("rests");
  }
  const units = unitsOf(work, runs);
  const ms = Math.max(...reports.map(({ at }) => at)) - beganAt;
  const nodeUs = reports.reduce((sum, report) => sum + report.nodeUs, 0);
  const row = { rate: (1000 * units) / ms, nodeUs: nodeUs / units, nodeCores: nodeUs / 1000 / ms };
  if (after === undefined) return row;
  const serverUs = cpuBetween(before, after);
  return { ...row, serverUs: serverUs / units, serverCores: serverUs / 1000 / ms };
}

/** The last report of each process that had work: together they have executed every step. */
async function untilAllIdle(children, steps) {
  const reports = new Map();
  const executed = () => [...reports.values()].reduce((sum, report) => sum + report.executed, 0);
  while (executed() < steps) {
    await sleep(2);
    for (const child of children) reports.set(child, child.latest("idle") ?? reports.get(child) ?? nothingYet);
  }
  if (executed() !== steps) throw new Error(`${executed()} steps were executed, not ${steps}.`);
  return [...reports.values()];
}

const nothingYet = { executed: 0, at: 0, nodeUs: 0 };
