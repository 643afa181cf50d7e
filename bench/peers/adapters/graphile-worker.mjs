// graphile-worker: a queue without workflows. A completed job counts as a one-step workflow; there is no counterpart
// for the other workloads. The settings are those of its own page on performance.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { handlers } from "../handlers.mjs";
import { settled } from "../settled.mjs";
import { countStatements } from "../statements.mjs";

const worker = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const statements = countStatements(pg);
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

export const graphileWorker = {
  settings: "batched: addJobs, 24 concurrent jobs, local queue of 500, completeJobBatchDelay 0; a queue only",
  sizes: { W1: 20_000, W4: 200 },

  async open({ url, meter }) {
    const preset = { worker: { ...worker, connectionString: url } };
    const utils = await makeWorkerUtils({ preset, logger });
    await utils.migrate();
    const ctx = { step: (_name, body) => body() };
    const taskList = Object.fromEntries(
      ["one_step", "enter"].map((name) => [
        name,
        async (payload) => {
          await handlers[name](ctx, payload.input);
        },
      ]),
    );
    const runner = await run({ preset, taskList, logger, noHandleSignals: true });
    const countOpen = async () =>
      (await meter.query("SELECT count(*)::int AS n FROM graphile_worker._private_jobs")).rows[0].n;
    const added = new Map();
    const noteAdded = (name, count) => added.set(name, (added.get(name) ?? 0) + count);
    return {
      statements,
      run: async (name, input) => {
        noteAdded(name, 1);
        await utils.addJob(name, { input });
        await settled(name, 1, countOpen);
      },
      runMany: async (name, inputs) => {
        noteAdded(name, inputs.length);
        await utils.addJobs(inputs.map((input) => ({ identifier: name, payload: { input } })));
        await settled(name, inputs.length, countOpen);
      },
      // A completed job is deleted; a failed one stays.
      completed: async (name) => added.get(name) - (await countOpen()),
      close: async () => {
        await runner.stop();
        await utils.release();
      },
    };
  },
};
