/**
 * Reports the state of runs. It has no workflow code either.
 *
 *     check.js <run>                 its status now
 *     check.js <run> --wait 30s      its result, when there is one
 *     check.js                       the metrics of each workflow
 */
import { parseArgs } from "node:util";
import { connect, type Pawl, PawlError, type RunInfo } from "pawl";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { wait: { type: "string" } } });
const [id] = positionals;

const pawl = await connect(process.env.PAWL_URL);
try {
  if (id === undefined) await printFigures(pawl);
  else if (values.wait === undefined) console.log(describe(await pawl.run(id).get()));
  else console.log("Completed:", await pawl.run(id).result({ timeout: values.wait }));
} catch (error) {
  if (!(error instanceof PawlError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await pawl.close();
}

function describe(run: RunInfo): string {
  switch (run.status) {
    case "completed":
      return `Completed: ${JSON.stringify(run.output)}`;
    case "failed":
      return `Failed: ${run.error?.message}`;
    case "canceled":
      return `Canceled: ${run.error?.message ?? "no reason given"}`;
    case "paused":
      return `Paused: ${run.pauseReason}`;
    default:
      // explain() says why no worker executes a run that is due.
      return `Still ${run.status}. ${run.explanation ?? ""}`.trimEnd();
  }
}

async function printFigures(pawl: Pawl): Promise<void> {
  for (const { workflows } of await pawl.queues())
    for (const name of workflows) {
      const { runs, successRate, durations, queue, workers } = await pawl.metrics(name);
      const rate = successRate === null ? "-" : `${(successRate * 100).toFixed(0)} %`;
      const mean = durations.mean === null ? "-" : `${durations.mean.toFixed(0)} ms`;
      const live = workers.filter((worker) => worker.live).length;
      console.log(
        `${name}: runs ${runs.total}, succeeded ${rate}, mean ${mean}, due ${queue.depth}, live workers ${live}`,
      );
    }
}
