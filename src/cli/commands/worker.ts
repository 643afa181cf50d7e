import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { runWorker, workerOptionSpecs } from "../worker-runner.js";

export const worker = command({
  name: "worker",
  about: "Execute the workflows in these files until stopped",
  args: ["[file…]"],
  options: workerOptionSpecs,
  example: "pawl worker workflows.ts --concurrency 50 --queue mail",
  takesFiles: true,

  run: async (call) => {
    const settings = await readSettings(call);
    const files = call.args.length > 0 ? call.args : (settings.config.workflows ?? []);
    if (files.length === 0)
      throw new CliError("Which workflows? Name a file: pawl worker workflows.ts, or list `workflows` in pawl.config.");
    await runWorker(call, { settings, files, report: { eachRun: false } });
  },
});
