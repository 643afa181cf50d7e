/** Runs a worker until somebody stops it: what `pawl worker` and `pawl dev` have in common. */

import { systemRuntime } from "../runtime/system.js";
import type { WorkerOptions } from "../worker/options.js";

import { wholeNumber } from "./arguments.js";
import type { Call, OptionSpecs, OptionValues } from "./command.js";
import type { Settings } from "./config.js";
import { loggerFor, openDatabase } from "./database.js";
import { loadDefinitions } from "./load.js";
import { onRunEnd } from "./run-ends.js";
import { type Signaled, stopSignal } from "./stop-signal.js";
import { type ReportOptions, WorkerReport } from "./worker-report.js";

export const workerOptions = {
  concurrency: { type: "string", value: "<n>", about: "How many runs it executes at a time; default 100" },
  name: { type: "string", value: "<name>", about: "Its name; default host:pid" },
  queue: {
    type: "string",
    multiple: true,
    value: "<name>",
    about: "Take only runs of this queue; may be given several times",
  },
  "no-migrate": { type: "boolean", about: "Leave the tables as they are; they must be up to date" },
  quiet: { type: "boolean", about: "Do not report runs and failed steps" },
} as const satisfies OptionSpecs;

export type WorkerCall = Call<typeof workerOptions>;

export interface Serving {
  readonly settings: Settings;
  readonly files: readonly string[];
  readonly report: Pick<ReportOptions, "eachRun">;
  /** Said once it works. */
  readonly hints: readonly string[];
  /** Awaited when the code is loaded, before anything is opened. */
  onLoaded?(): Promise<void>;
  onServing?(): void;
  /** By whom it is asked to stop; default: the signals that the process gets. */
  readonly signaled?: Signaled;
}

export async function serve(call: WorkerCall, serving: Serving): Promise<void> {
  const { settings, files, report: how, hints } = serving;
  const { out, options } = call;
  const given = optionsFor(options, settings);
  const { workflows, jobs } = await loadDefinitions(files);
  await serving.onLoaded?.();
  const report = new WorkerReport(out, { ...how, quiet: options.quiet === true });
  const stopped = stopSignal({
    process: serving.signaled ?? process,
    now: () => systemRuntime.monotonic(),
    leaveAtOnce: () => {
      report.note("Left at once; others take over what it had in hand.");
      process.exit(1);
    },
  });
  const { pawl, store } = await openDatabase(settings, out, {
    migrate: options["no-migrate"] !== true && settings.config.migrate !== false,
    logger: loggerFor(out, (text) => report.note(text)),
    onError: (error, about) => report.stepFailed(error, about),
  });
  const stopListening = onRunEnd((end) => report.runEnded(end, store));
  try {
    const worker = pawl.worker({ workflows, ...(jobs.length === 0 ? {} : { jobs }), ...given });
    await worker.start();
    const names = workflows.map(({ name, version }) => (version === "" ? name : `${name} ${version}`)).sort();
    const ofJobs = jobs.map(({ job }) => job).sort();
    const { id, name } = worker;
    const served = [...names, ...ofJobs.map((job) => `job ${job}`)].join(", ");
    const begun = { event: "worker.started", id, name, database: pawl.description, workflows: names, jobs: ofJobs };
    report.say(begun, () => [`Worker ${name} serves ${served} on ${pawl.description}.`, ...hints].join("\n"));
    serving.onServing?.();
    report.begin(() => worker.active);
    const signal = await stopped;
    if (worker.active > 0)
      report.note(`Stopping: what it has in hand (${worker.active}) may finish. Again to leave at once.`);
    await worker.stop();
    await report.end();
    const { ended } = report;
    report.say({ event: "worker.stopped", id, name, signal, ended }, () => `Worker ${name} has stopped.`);
  } finally {
    stopListening();
    await pawl.close();
  }
}

function optionsFor(
  options: OptionValues<typeof workerOptions>,
  { config }: Settings,
): Omit<WorkerOptions, "workflows"> {
  const concurrency = wholeNumber("concurrency", options.concurrency) ?? config.concurrency;
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
