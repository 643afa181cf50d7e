import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { superviseWorker } from "../dev/supervise.js";
import { isWorkerProcess, mayBegin, supervised, tellOfFiles, tellServing } from "../dev/worker-process.js";
import { serve, workerOptions } from "../serve.js";

const usualFiles = ["workflows.ts", "workflows.js", "workflows.mts", "workflows.mjs"].flatMap((name) => [
  name,
  `src/${name}`,
]);

export const dev = command({
  name: "dev",
  about: "Work on this machine: a database file, and a worker that follows your code",
  args: ["[file…]"],
  options: workerOptions,
  example: "pawl dev workflows.ts",
  takesFiles: true,

  run: async (call) => {
    const isWorker = isWorkerProcess(call.env);
    if (isWorker) tellOfFiles();
    const settings = await settingsOf(call);
    const files = call.args.length > 0 ? call.args : (settings.config.workflows ?? usualFile());
    if (!isWorker) return superviseWorker(call.out, process.argv.slice(2));
    const config = settings.configFile === null ? [] : [settings.configFile];
    await serve(call, {
      settings,
      files,
      report: { eachRun: true },
      hints: [
        "Start a run from another terminal: pawl start <workflow> '<json>'. Ctrl-C stops.",
        "When a file of the code changes, the worker begins anew with it.",
      ],
      onLoaded: () => mayBegin([...files, ...config].map((file) => resolve(file))),
      onServing: tellServing,
      signaled: supervised,
    });
  },
});

function usualFile(): readonly string[] {
  const found = usualFiles.find((file) => existsSync(file));
  if (found !== undefined) return [found];
  throw new CliError("There is no workflows.ts here; name a file: pawl dev my-workflows.ts");
}
