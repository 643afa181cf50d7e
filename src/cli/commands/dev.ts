import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CliError } from "../cli-error.js";
import { type Call, command, type OptionSpecs } from "../command.js";
import { readSettings, type Settings } from "../config.js";
import { DevDashboard } from "../dev/dashboard.js";
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

const options = {
  ...workerOptionSpecs,
  port: { type: "string", value: "<n>", about: "The port of the dashboard; default 4000, or the next free one" },
  "no-dashboard": { type: "boolean", about: "Serve no dashboard" },
} as const satisfies OptionSpecs;

export const dev = command({
  name: "dev",
  about: "Develop locally: a database file, the dashboard, and a worker that restarts when your code changes",
  args: ["[file…]"],
  options,
  example: "pawl dev workflows.ts",
  takesFiles: true,

  run: async (call) => {
    const isWorker = isWorkerProcess(call.env);
    if (isWorker) reportLoadedFiles();
    const settings = await readSettings(call);
    const files = call.args.length > 0 ? call.args : (settings.config.workflows ?? findDefaultFile());
    if (!isWorker) return supervise(call, settings);
    const config = settings.configFile === null ? [] : [settings.configFile];
    let dashboardUrl: string | null = null;
    await runWorker(call, {
      settings,
      files,
      report: { eachRun: true },
      startupTexts: () => [
        ...(dashboardUrl === null ? [] : [`Dashboard: ${call.out.paint("bold", dashboardUrl)}`]),
        "Start a run from another terminal: pawl start <workflow> '<json>'. Ctrl-C stops.",
        "When a file of your code changes, the worker restarts with it.",
      ],
      startupFields: () => ({ dashboard: dashboardUrl }),
      onLoaded: async () => {
        dashboardUrl = await waitForStart([...files, ...config].map((file) => resolve(file)));
      },
      onReady: reportReady,
      signalSource: supervisorSignals,
    });
  },
});

async function supervise({ out, options: given }: Call<typeof options>, settings: Settings): Promise<void> {
  const isWanted = given["no-dashboard"] !== true && !isInMemory(settings.url);
  const dashboard = isWanted ? await DevDashboard.listen(given.port, settings, out) : null;
  try {
    await superviseWorker(out, {
      argv: process.argv.slice(2),
      dashboardUrl: dashboard?.url ?? null,
      onReady: () => dashboard?.open(),
    });
  } finally {
    await dashboard?.close();
  }
}

/** The process of the dashboard would not see the runs of the worker's process. */
const isInMemory = (url: string) => /^memory:|:memory:$/.test(url);

function findDefaultFile(): readonly string[] {
  const found = defaultFiles.find((file) => existsSync(file));
  if (found !== undefined) return [found];
  throw new CliError("There is no workflows.ts here; name a file: pawl dev my-workflows.ts");
}
