// One of several processes that share the work.
//
//   node worker-process.mjs <url>

import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "pawl";
import { listen, nowMs, tell } from "./child.mjs";
import { workOf } from "./work.mjs";

const concurrency = 250;
/** With 300 warm-up runs, a run still took twice the CPU when its measurement started. */
const warmUpRuns = 2000;

const pawl = await connect(process.argv[2]);
let executed = 0;
const work = workOf({ onStep: () => (executed += 1) });

listen({ work: workUntilStopped, rest: () => stopWork(), stop: () => pawl.close() });
await warmUp();
tell("ready");

/**
 * Opens connections, prepares statements and compiles code with runs of another workflow, a separate one for each
 * process.
 */
async function warmUp() {
  const definition = workOf({ name: `growth_warm_up_${process.pid}` });
  const worker = await pawl.worker({ workflows: [definition], concurrency }).start();
  const inputs = Array.from({ length: warmUpRuns }, () => ({ steps: 5 }));
  const runs = await pawl.startMany(definition, inputs);
  for (const run of runs) await run.result();
  await worker.stop();
}

let stopWork;

/** Reports how much it has done whenever it becomes idle: there may be more to do a moment later. */
async function workUntilStopped() {
  executed = 0;
  let reported = -1;
  const worker = pawl.worker({ workflows: [work], concurrency });
  const cpu = process.cpuUsage();
  await worker.start();
  let stopped = false;
  stopWork = async () => {
    stopped = true;
    await worker.stop();
    tell("rests");
  };
  while (!stopped) {
    if (worker.active === 0 && executed !== reported) {
      reported = executed;
      const { user, system } = process.cpuUsage(cpu);
      tell("idle", { executed, at: nowMs(), nodeUs: user + system });
    }
    await sleep(2);
  }
}
