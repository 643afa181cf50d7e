/**
 * A worker process: executes the workflows that the named modules export until it is stopped.
 *
 *     worker.js --name worker-1 --concurrency 10 ./workflows.js
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { connect, discoverWorkflows } from "pawl";

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: "string", default: `worker-${process.pid}` },
    concurrency: { type: "string", default: "10" },
    lease: { type: "string", default: "10s" },
  },
});

const modules: object[] = await Promise.all(files.map((file) => import(pathToFileURL(resolve(file)).href)));
const workflows = modules.flatMap(discoverWorkflows);

// Log what steps log, but not every transition of every run (debug).
const pawl = await connect(process.env.PAWL_URL, { logger: { ...console, debug: () => {} } });
const { name, lease, concurrency } = options;
await pawl.worker({ workflows, name, lease, concurrency: Number(concurrency) }).start();
console.log(`${name} serves ${workflows.map((workflow) => workflow.name).join(", ")}`);

// Claims nothing new, lets running steps finish, and releases their runs. Then nothing is left open, and the process
// ends.
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, async () => {
    console.log(`${name} is stopping`);
    await pawl.close();
    console.log(`${name} has stopped`);
  });
