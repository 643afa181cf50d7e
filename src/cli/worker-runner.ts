/** Runs a worker until it is asked to stop; shared by `pawl worker` and `pawl dev`. */

import { systemRuntime } from "../runtime/system.js";
import type { WorkerOptions } from "../worker/options.js";
import { integerArgument } from "./arguments.js";
import type { Call, OptionSpecs, OptionValues } from "./command.js";
import type { Settings } from "./config.js";
import { createLogger, openDatabase } from "./database.js";
import { formatCount } from "./format-count.js";
import { loadDefinitions } from "./module-loader.js";
import { onRunEnd } from "./run-ends.js";
import { type SignalSource, waitForStopSignal } from "./stop-signal.js";
import { type ReportOptions, WorkerReport } from "./worker-report.js";

export const workerOptionSpecs = {
  concurrency: { type: "string", value: "<n>", about: "How many runs it executes at a time; default 100" },
  name: { type: "string", value: "<name>", about: "Its name; default host:pid" },
  queue: {
    type: "string",
    multiple: true,
    value: "<name>",
    about: "Take only runs of this queue; may be given several times",
  },
  app: { type: "string", value: "<name>", about: 'The application that owns its schedules; default "default"' },
  "no-migrate": { type: "boolean", about: "Leave the tables as they are; they must be up to date" },
  quiet: { type: "boolean", about: "Do not report runs and failed steps" },
} as const satisfies OptionSpecs;

export type WorkerCall = Call<typeof workerOptionSpecs>;

export interface RunWorkerOptions {
  readonly settings: Settings;
  readonly files: readonly string[];
  readonly report: Pick<ReportOptions, "eachRun">;
  /** Printed when the worker has started. */
  startupTexts?(): readonly string[];
  /** Further fields of the event that a worker with --json prints when it has started. */
  startupFields?(): object;
  /** Awaited after the code is loaded and before the database is opened. */
  onLoaded?(): Promise<void>;
  onReady?(): void;
  /** The source of the signals to stop; default: the process. */
  readonly signalSource?: SignalSource;
}

export async function runWorker(call: WorkerCall, runOptions: RunWorkerOptions): Promise<void> {
  const { settings, files, report: reportOptions } = runOptions;
  const { out, options } = call;
  const resolvedOptions = resolveWorkerOptions(options, settings);
  const { workflows, jobs, schedules } = await loadDefinitions(files);
  await runOptions.onLoaded?.();
  const report = new WorkerReport(out, { ...reportOptions, quiet: options.quiet === true });
  const stopRequested = waitForStopSignal({
    process: runOptions.signalSource ?? process,
    now: () => systemRuntime.monotonic(),
    exitNow: () => {
      report.note("Exited at once; other workers take over its runs.");
      process.exit(1);
    },
  });
  const { pawl, store } = await openDatabase(settings, out, {
    migrate: options["no-migrate"] !== true && settings.config.migrate !== false,
    logger: createLogger(out, (text) => report.note(text)),
    onError: (error, about) => report.stepFailed(error, about),
    app: options.app,
  });
  const stopListening = onRunEnd((end) => report.runEnded(end, store));
  try {
    const worker = pawl.worker({
      workflows,
      ...(jobs.length === 0 ? {} : { jobs }),
      // An empty list would retire the schedules that other workers of the application declare.
      ...(schedules.length === 0 ? {} : { schedules }),
      ...resolvedOptions,
    });
    await worker.start();
    const workflowNames = workflows.map(({ name, version }) => (version === "" ? name : `${name} ${version}`)).sort();
    const jobNames = jobs.map(({ job }) => job).sort();
    const { id, name } = worker;
    const definitionsText = [...workflowNames, ...jobNames.map((job) => `job ${job}`)].join(", ");
    const schedulesText = schedules.length === 0 ? "" : formatCount(schedules.length, "schedule");
    const servedText = [definitionsText, schedulesText].filter(Boolean).join(" and ");
    const startedEvent = {
      event: "worker.started",
      id,
      name,
      database: pawl.description,
      workflows: workflowNames,
      jobs: jobNames,
      schedules: schedules.map((schedule) => schedule.name).sort(),
      ...runOptions.startupFields?.(),
    };
    const servesText = `Worker ${name} serves ${servedText} on ${pawl.description}.`;
    report.printEvent(startedEvent, () => [servesText, ...(runOptions.startupTexts?.() ?? [])].join("\n"));
    runOptions.onReady?.();
    report.start(() => worker.active);
    const signal = await stopRequested;
    if (worker.active > 0)
      report.note(
        `Stopping: ${formatCount(worker.active, "active run")} may finish. Press Ctrl-C again to exit at once.`,
      );
    await worker.stop();
    await report.end();
    const { endedCounts } = report;
    report.printEvent(
      { event: "worker.stopped", id, name, signal, ended: endedCounts },
      () => `Worker ${name} has stopped.`,
    );
  } finally {
    stopListening();
    await pawl.close();
  }
}

function resolveWorkerOptions(
  options: OptionValues<typeof workerOptionSpecs>,
  { config }: Settings,
): Omit<WorkerOptions, "workflows"> {
  const concurrency = integerArgument("concurrency", options.concurrency) ?? config.concurrency;
  const name = options.name ?? config.name;
  const queues = options.queue ?? config.queues;
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(name === undefined ? {} : { name }),
    ...(queues === undefined ? {} : { queues }),
    ...(config.lease === undefined ? {} : { lease: config.lease }),
    ...(config.grace === undefined ? {} : { grace: config.grace }),
  };
}
