// DBOS, in its two modes: a workflow runs immediately in the process that starts it, or it goes through a queue.

import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";
import { handlers } from "../handlers.mjs";
import { settled } from "../settled.mjs";
import { countStatements } from "../statements.mjs";

const poolSize = 20;
const pollMs = 20;
const statements = countStatements(pg);

export const dbosDirect = {
  settings: `startWorkflow in the same process, pool of ${poolSize}, no tracing`,
  sizes: { W1: 1000, W2: 300, W3: 600, W4: 100, W5s: 1000, W5c: 1000 },
  open: (given) => open(given, {}),
};

export const dbosQueue = {
  settings: `a queue polled every ${pollMs} ms without limits, for W8 one partitioned by key; pool of ${poolSize}, no tracing`,
  sizes: { W1: 1000, W2: 300, W3: 600, W4: 100, W5s: 1000, W5c: 1000, W8: 1000 },
  open: (given) => open(given, { queueName: "bench" }),
};

const keyedQueue = "bench_keyed";
const keyedParams = ({ key }) => ({ queueName: keyedQueue, enqueueOptions: { queuePartitionKey: key } });

async function open({ url, meter }, params) {
  const workflows = new Map();
  const start = (name, input) =>
    DBOS.startWorkflow(workflows.get(name), name === "keyed" ? keyedParams(input) : params)(input);
  const ctx = {
    step: (name, body) => DBOS.runStep(async () => body(), { name }),
    all: (promises) => Promise.all(promises),
    children: async (name, inputs) => {
      const children = await Promise.all(inputs.map((input) => start(name, input)));
      return Promise.all(children.map((child) => child.getResult({ pollingIntervalMs: pollMs })));
    },
  };
  for (const [name, handler] of Object.entries(handlers))
    workflows.set(
      name,
      DBOS.registerWorkflow((input) => handler(ctx, input), { name }),
    );
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize: poolSize, logLevel: "error" });
  await DBOS.launch();
  if (params.queueName) {
    await DBOS.registerQueue(params.queueName, { minPollingIntervalMs: pollMs });
    await DBOS.registerQueue(keyedQueue, { minPollingIntervalMs: pollMs, partitionConcurrency: 1 });
  }

  const count = async (condition, values) =>
    (await meter.query(`SELECT count(*)::int AS n FROM dbos.workflow_status WHERE ${condition}`, values)).rows[0].n;
  const countOpen = () => count("status IN ('ENQUEUED', 'PENDING')");
  return {
    statements,
    run: async (name, input) => {
      await start(name, input);
      await settled(name, 1, countOpen);
    },
    runMany: async (name, inputs) => {
      await Promise.all(inputs.map((input) => start(name, input)));
      await settled(name, inputs.length, countOpen);
    },
    completed: (name) => count("name = $1 AND status = 'SUCCESS'", [name]),
    close: () => DBOS.shutdown(),
  };
}
