// Are the copied runs real runs? Checks a sample of each kind: what the client shows, whether its log matches its row
// and task, and whether the engine continues a run that is resumed.

import { isDeepStrictEqual } from "node:util";
import { workName, workOf } from "../work.mjs";

const day = 24 * 3_600_000;
const agesMs = [1 * day, 9 * day, 17 * day, 25 * day];
const perAge = 5;

const output = { ok: true, total: 1 };
const kinds = {
  completed: (run) => isDeepStrictEqual(run.output, output) && run.finishedAt >= run.startedAt,
  waiting: (run) => isDeepStrictEqual(run.waitingFor, [{ kind: "sleep", name: "rest" }]) && run.output === null,
  paused: (run) => run.pauseReason === "for a person to look at" && run.output === null,
};

/** @returns {Promise<number>} how many runs were checked */
export async function checkSample(pawl) {
  let checked = 0;
  for (const [status, isRight] of Object.entries(kinds)) {
    for (const age of agesMs) {
      const { runs } = await pawl.runs({
        workflow: workName,
        status,
        createdBefore: Date.now() - age,
        limit: perAge,
      });
      if (runs.length !== perAge) throw new Error(`Of ${status} runs older than ${age / day} days, none can be found.`);
      for (const run of runs) await checkRun(pawl, run, isRight);
      checked += runs.length;
    }
  }
  await checkResumed(pawl);
  return checked;
}

async function checkRun(pawl, run, isRight) {
  const seen = await pawl.run(run.id).get();
  if (!isDeepStrictEqual(seen, run) || !isRight(seen))
    throw new Error(`A copied run is wrong: ${JSON.stringify(seen)}`);
  const { runs, events, differences } = await pawl.verify(run.id);
  if (runs !== 1 || events < 2 || differences.length > 0)
    throw new Error(`The log and the tables of ${run.id} differ: ${JSON.stringify(differences)}`);
}

/** Afterwards, one of the ten thousand paused runs is no longer paused. */
async function checkResumed(pawl) {
  const { runs } = await pawl.runs({ workflow: workName, status: "paused", createdBefore: Date.now() - day, limit: 1 });
  const worker = await pawl.worker({ workflows: [workOf()] }).start();
  const run = pawl.run(runs[0].id);
  await run.resume();
  if (!isDeepStrictEqual(await run.result({ timeout: "10s" }), output)) throw new Error("A resumed copy went wrong.");
  await worker.stop();
}
