// openworkflow on PostgreSQL.

import { OpenWorkflow } from "openworkflow";
import { BackendPostgres } from "openworkflow/postgres";
import postgres from "postgres";
import { handlers } from "../handlers.mjs";
import { settled } from "../settled.mjs";

const concurrency = 50;
const connections = 10;

export const openworkflow = {
  settings: `worker concurrency ${concurrency}, pool of ${connections}; analysed after the warm-up`,
  sizes: { W1: 1000, W2: 300, W3: 1000, W4: 30, W5s: 1000, W5c: 1000 },

  async open({ url, meter }) {
    // Only connect() creates the tables, and only fromPool() accepts more connections than the driver's ten.
    await (await BackendPostgres.connect(url)).stop();
    let sent = 0;
    const pool = postgres(url, {
      max: connections,
      // As in its own pool, because the library reads columns by these names.
      transform: postgres.toCamel,
      onnotice: () => {},
      debug: () => {
        sent += 1;
      },
    });
    const backend = BackendPostgres.fromPool(pool);
    const client = new OpenWorkflow({ backend });
    const workflows = new Map();
    for (const [name, handler] of Object.entries(handlers))
      workflows.set(
        name,
        client.defineWorkflow({ name }, ({ input, step }) => handler(withOurNames(step, workflows), input)),
      );
    const worker = client.newWorker({ concurrency });
    await worker.start();

    const count = async (condition, values) =>
      (await meter.query(`SELECT count(*)::int AS n FROM openworkflow.workflow_runs WHERE ${condition}`, values))
        .rows[0].n;
    const countOpen = () => count("status IN ('pending', 'running', 'sleeping')");
    return {
      statements: () => sent,
      run: async (name, input) => {
        await workflows.get(name).run(input);
        await settled(name, 1, countOpen);
      },
      runMany: async (name, inputs) => {
        await Promise.all(inputs.map((input) => workflows.get(name).run(input)));
        await settled(name, inputs.length, countOpen);
      },
      // The planner must know that most runs are complete, as on a server that has run for a while: that saves a
      // quarter of the CPU there. A queue table that is analyzed while empty gets a plan that is very slow afterwards.
      warmedUp: () => meter.query("ANALYZE"),
      completed: (name) => count("workflow_name = $1 AND status = 'completed'", [name]),
      close: async () => {
        await worker.stop();
        await backend.stop();
      },
    };
  },
};

const withOurNames = (step, workflows) => ({
  step: (name, body) => step.run({ name }, body),
  all: (promises) => Promise.all(promises),
  children: (name, inputs) =>
    Promise.all(
      inputs.map((input) => step.runWorkflow(workflows.get(name).workflow.spec, input, { name: `${name}_${input}` })),
    ),
});
