// Long runs: what a step costs in a run that already has many, and how soon such a run continues in another process:
// after a signal, and after its process was killed in the middle of a step.

import { setTimeout as sleep } from "node:timers/promises";
import { connect, workflow } from "pawl";
import { asNumber, printTable } from "../report.mjs";
import { median } from "../statistics.mjs";
import { startProcess } from "./child.mjs";
import { summarise } from "./figures.mjs";
import { quiet } from "./quiet.mjs";

const sizes = { full: [10, 100, 1000, 10_000], quick: [10, 100, 1000] };
const targetMs = 1000;

const figures = {
  stepMs: "ms / step",
  toldMs: "signal → next step, ms",
  killedMs: "after kill -9: worker start → next step, ms",
  historyMs: "history(), ms",
};

export const longRuns = {
  id: "long",
  title: "Long runs",
  rounds: { full: 3, quick: 1 },

  async measure({ storeName, openDatabase, size, rounds }) {
    const database = await openDatabase(storeName);
    const pawl = await connect(database.url, { logger: quiet });
    try {
      const measured = [];
      for (let round = 0; round < rounds; round += 1) measured.push(await measureRound(pawl, database, sizes[size]));
      return sizes[size].map((steps) => {
        const rows = measured.map((round) => round.get(steps));
        return { steps, ...summarise(rows, Object.keys(figures)), pages: rows[0].pages };
      });
    } finally {
      await pawl.close();
      await database.close();
    }
  },

  print(rows) {
    printTable(
      ["steps", ...Object.values(figures), "pages"],
      rows.map((row) => [
        row.steps.toLocaleString("en"),
        ...Object.keys(figures).map((name) => asNumber(row[name].median)),
        String(row.pages),
      ]),
    );
    const longest = rows.at(-1);
    const worst = Math.max(longest.toldMs.median, longest.killedMs.median);
    const verdict = worst < targetMs ? "holds" : "does not hold";
    console.log(`  resumes with ${longest.steps.toLocaleString("en")} steps in under ${targetMs / 1000} s: ${verdict}`);
  },
};

const script = new URL("long-run-process.mjs", import.meta.url);

/** One run of each size is executed by three processes in turn. */
async function measureRound(pawl, database, all) {
  const rows = new Map(all.map((size) => [size, {}]));
  const runs = await record(pawl, database, rows);
  await goOnWhenTold(database, rows, runs);
  await untilFreed(pawl, runs);
  for (const [size, row] of rows) {
    const run = runs.get(size);
    row.killedMs = await goOnAfterKill(run, database, size);
    Object.assign(row, await readHistory(run, size));
  }
  return rows;
}

/** The first process records the steps, one run after the other, and is killed while they wait. */
async function record(pawl, database, rows) {
  const child = startProcess(script, [database.url, [...rows.keys()], "end"]);
  const runs = new Map();
  try {
    await child.next("connected");
    child.say("work");
    child.say("warmUp");
    await child.next("warm");
    child.latest("recorded");
    for (const [size, row] of rows) {
      const times = [];
      for (let left = Math.ceil(leastSteps / size); left > 1; left -= 1)
        times.push((await recordOne(child, size, false)).ms / size);
      const { id, ms } = await recordOne(child, size, true);
      row.stepMs = median([...times, ms / size]);
      const run = pawl.run(id);
      while ((await run.status()) !== "waiting") await sleep(5);
      runs.set(size, run);
    }
    return runs;
  } finally {
    await child.kill();
  }
}

/** Ten steps end too quickly to be timed, so there are several short runs. */
const leastSteps = 200;

async function recordOne(child, size, waits) {
  child.say("start", { size, waits });
  const { id } = await child.next("started");
  const { ms } = await child.next("recorded");
  return { id, ms };
}

/**
 * The second process signals each run, and is killed in the middle of their last steps. A signal from another process
 * would arrive as fast as a start does, or wait for a poll: another benchmark measures that.
 */
async function goOnWhenTold(database, rows, runs) {
  const child = startProcess(script, [database.url, [...rows.keys()], "hold"]);
  try {
    await child.next("connected");
    child.say("work");
    child.say("warmUp");
    await child.next("warm");
    for (const [size, row] of rows) {
      child.say("signal", { id: runs.get(size).id });
      const { at } = await child.next("signals");
      row.toldMs = (await child.next("told")).at - at;
      await child.next("last");
    }
  } finally {
    await child.kill();
  }
}

/**
 * A worker notices that the process is dead when its lease has expired. That time depends on the lease, not on the run.
 */
async function untilFreed(pawl, runs) {
  const nothing = workflow("growth_nothing", () => {});
  const reaper = await pawl.worker({ workflows: [nothing], lease: "1s" }).start();
  for (const run of runs.values()) while ((await run.status()) === "running") await sleep(20);
  await reaper.stop();
}

/** The third process, cold except for its connection, takes over a run and finishes it. */
async function goOnAfterKill(run, database, size) {
  const child = startProcess(script, [database.url, size, "end"]);
  try {
    await child.next("connected");
    child.say("work");
    const { at } = await child.next("works");
    const last = await child.next("last");
    if ((await run.result({ timeout: "30s" })) !== size) throw new Error(`The run with ${size} steps went wrong.`);
    return last.at - at;
  } finally {
    await child.stop();
  }
}

const pageLimit = 1000;

/** A log is read in pages, because a single larger read is refused. */
async function readHistory(run, size) {
  const refused = await run.history({ limit: pageLimit + 1 }).then(
    () => false,
    () => true,
  );
  if (!refused) throw new Error("history() gave more than a page.");
  const beganAt = performance.now();
  let [events, pages, steps] = [0, 0, 0];
  for (;;) {
    const page = await run.history({ after: events, limit: pageLimit });
    if (page.length > pageLimit) throw new Error(`A page of ${page.length} events.`);
    pages += 1;
    events += page.length;
    steps += page.filter(({ type }) => type === "step.completed").length;
    if (page.length < pageLimit) break;
  }
  if (steps !== size + 2) throw new Error(`The history has ${steps} steps, not ${size + 2}.`);
  return { historyMs: performance.now() - beganAt, pages };
}
