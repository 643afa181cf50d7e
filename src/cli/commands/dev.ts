import { existsSync } from "node:fs";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { serve, workerOptions } from "../serve.js";

const usualFiles = ["workflows.ts", "workflows.js", "workflows.mts", "workflows.mjs"].flatMap((name) => [
  name,
  `src/${name}`,
]);

export const dev = command({
  name: "dev",
  about: "Work on this machine: a database file, a worker, and what happens",
  args: ["[file…]"],
  options: workerOptions,
  example: "pawl dev workflows.ts",
  takesFiles: true,

  run: async (call) => {
    const settings = await settingsOf(call);
    const files = call.args.length > 0 ? call.args : (settings.config.workflows ?? usualFile());
    await serve(call, {
      settings,
      files,
      report: { eachRun: true },
      hints: ["Start a run from another terminal: pawl start <workflow> '<json>'. Ctrl-C stops."],
    });
  },
});

function usualFile(): readonly string[] {
  const found = usualFiles.find((file) => existsSync(file));
  if (found !== undefined) return [found];
  throw new CliError("There is no workflows.ts here; name a file: pawl dev my-workflows.ts");
}
