// The measured work: runs of one workflow with a given number of steps. The same workflow can also sleep or pause after
// its steps, so that a table can be filled with such runs beside the measured ones.

import { workflow } from "pawl";
import { cpuBetween } from "../cost.mjs";
import { drained } from "../workloads/with-worker.mjs";

export const workName = "growth_work";

/** W1 and W2 of the ordinary benchmark: many small runs, and many steps. */
export const works = {
  W1: { title: "W1 one-step workflows / s", unit: "run", steps: 1, runs: { full: 5000, quick: 1000 } },
  W2: { title: "W2 steps / s", unit: "step", steps: 10, runs: { full: 1000, quick: 200 } },
};

export const unitsOf = ({ unit, steps }, runs) => (unit === "run" ? runs : runs * steps);

/**
 * `payload` is what every step returns, and is not returned again at the end; `onStep` is called for each executed
 * step.
 */
export function workOf({ onStep = () => {}, payload, name = workName } = {}) {
  return workflow(name, async (ctx, { steps, then }) => {
    let last;
    for (let step = 1; step <= steps; step += 1) {
      last = await ctx.step(`step_${step}`, () => {
        onStep();
        return payload ?? { ok: true, total: step };
      });
    }
    if (then === "sleep") await ctx.sleep("rest", "90 days");
    if (then === "pause") ctx.pause("for a person to look at");
    return payload === undefined ? last : undefined;
  });
}

/**
 * Starts the runs and waits until the last has ended, with client and worker in one process. Returns the time and the
 * CPU of each side.
 */
export async function measureWork({ pawl, database }, { steps, runs, input = {}, payload }) {
  let executed = 0;
  const work = workOf({ onStep: () => (executed += 1), payload });
  const worker = await pawl.worker({ workflows: [work], concurrency: 500 }).start();
  try {
    const inputs = Array.from({ length: runs }, () => ({ ...input, steps }));
    const since = await newestAt(database);
    const cost = await measureCpu(database, async () => {
      await pawl.startMany(work, inputs);
      await drained(worker, () => executed === runs * steps);
    });
    await checkCompleted(database, since, runs);
    return cost;
  } finally {
    await worker.stop();
  }
}

async function measureCpu(database, work) {
  const before = await database.cpuUs();
  const cpu = process.cpuUsage();
  const beganAt = performance.now();
  await work();
  const ms = performance.now() - beganAt;
  const { user, system } = process.cpuUsage(cpu);
  const after = await database.cpuUs();
  const serverUs = after === undefined ? undefined : cpuBetween(before, after);
  return { ms, nodeUs: user + system, serverUs };
}

/** When the newest run was created: runs that are started now are younger. */
export async function newestAt(database) {
  const [row] = await database.query(`SELECT max(created_at) AS newest FROM pawl_runs WHERE workflow = '${workName}'`);
  return Number(row.newest);
}

/** Checks that all runs since then have completed, because an idle worker alone is not proof. */
export async function checkCompleted(database, since, expected) {
  const sql = `SELECT status, count(*) AS n FROM pawl_runs WHERE workflow = '${workName}' AND created_at > ${since} GROUP BY status`;
  const found = await database.query(sql);
  const counts = Object.fromEntries(found.map(({ status, n }) => [String(status), Number(n)]));
  if (counts.completed === expected && found.length === 1) return;
  throw new Error(`${expected} runs should have completed; the database says ${JSON.stringify(counts)}.`);
}
