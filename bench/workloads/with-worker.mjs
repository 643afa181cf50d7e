// A worker of this process for the length of a measurement.

import { setTimeout as sleep } from "node:timers/promises";

export async function withWorker(pawl, workflows, measure, options = {}) {
  const worker = pawl.worker({ workflows, concurrency: 500, ...options });
  await worker.start();
  try {
    const result = await measure({ drained: (isComplete) => drained(worker, isComplete) });
    await checkAllCompleted(pawl, workflows);
    return result;
  } finally {
    await worker.stop();
  }
}

/**
 * Resolves when the worker has nothing left: a run leaves it when its end is committed. Waiting for every result would
 * measure the reading of results.
 */
export async function drained(worker, isComplete) {
  while (!isComplete() || worker.active > 0) await sleep(1);
}

async function checkAllCompleted(pawl, workflows) {
  for (const workflow of workflows) {
    for (const filter of [{ active: true }, { status: "failed" }]) {
      const [run] = (await pawl.runs({ workflow, ...filter, limit: 1 })).runs;
      if (run !== undefined) throw new Error(`${run.workflow}: run ${run.id} is ${run.status}, not completed.`);
    }
  }
}
