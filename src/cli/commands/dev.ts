import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { superviseWorker } from "../dev/supervisor.js";
import {
  isWorkerProcess,
  reportLoadedFiles,
  reportReady,
  supervisorSignals,
  waitForStart,
} from "../dev/worker-process.js";
import { runWorker, workerOptionSpecs } from "../worker-runner.js";

const defaultFiles = ["workflows.ts", "workflows.js", "workflows.mts", "workflows.mjs"].flatMap((name) => [
  name,
  `src/${name}`,
]);

export const dev = command({
  name: "dev",
  about: "Develop locally: a database file, and a worker that restarts when your code changes",
  args: ["[file…]"],
  options: workerOptionSpecs,
  example: "pawl dev workflows.ts",
  takesFiles: true,

  run: async (call) => {
    const isWorker = isWorkerProcess(call.env);
    if (isWorker) reportLoadedFiles();
    const settings = await readSettings(call);
    const files = call.args.length > 0 ? call.args : (settings.config.workflows ?? findDefaultFile());
    if (!isWorker) return superviseWorker(call.out, process.argv.slice(2));
    const config = settings.configFile === null ? [] : [settings.configFile];
    await runWorker(call, {
      settings,
      files,
      report: { eachRun: true },
      startupTexts: [
        "Start a run from another terminal: pawl start <workflow> '<json>'. Ctrl-C stops.",
        "When a file of your code changes, the worker restarts with it.",
      ],
      onLoaded: () => waitForStart([...files, ...config].map((file) => resolve(file))),
      onReady: reportReady,
      signalSource: supervisorSignals,
    });
  },
});

function findDefaultFile(): readonly string[] {
  const found = defaultFiles.find((file) => existsSync(file));
  if (found !== undefined) return [found];
  throw new CliError("There is no workflows.ts here; name a file: pawl dev my-workflows.ts");
}
