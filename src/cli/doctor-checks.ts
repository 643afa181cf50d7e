/** The checks of `pawl doctor`. Each depends on the ones before it, so a problem ends the list. */

import { isBuiltin } from "node:module";
import { listQueues } from "../client/operate/queues.js";
import { titleOf } from "../client/operate/workers.js";
import { openStore } from "../connect.js";
import { systemRuntime } from "../runtime/system.js";
import { canExecute, isWorkerLive } from "../store/contract/live-workers.js";
import type { RunRecord, Store, TaskRecord, WorkerRecord } from "../store/contract/store.js";
import { isRemoteUrl } from "../store/libsql-remote/address.js";
import { redactUrl } from "../store/shared/secrets.js";
import { sentenceOf } from "./cli-error.js";
import { type Settings, storeOptionsOf } from "./config.js";
import { formatMigrations, missingFile } from "./database.js";
import { durationText } from "./times.js";

export interface Check {
  readonly name: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly text: string;
}

const ok = (name: string, text: string): Check => ({ name, verdict: "ok", text });
const warning = (name: string, text: string): Check => ({ name, verdict: "warning", text });
const problem = (name: string, text: string): Check => ({ name, verdict: "problem", text });

const minNodeVersion = 20;
/**
 * The database's clock measures delays, and this machine's clock makes dates; users notice a difference of about this
 * size.
 */
const maxClockSkewMs = 2_000;
/** How many open runs are checked. */
const maxCheckedRuns = 1_000;
const checkedPage = { limit: maxCheckedRuns, maxExamined: 10 * maxCheckedRuns } as const;

export async function runChecks(settings: Settings): Promise<Check[]> {
  const localChecks = [checkNode(), checkSettings(settings), await checkDriver(settings)];
  if (localChecks.some(({ verdict }) => verdict === "problem")) return localChecks;
  try {
    const missing = missingFile(settings.url);
    if (missing !== null)
      return [...localChecks, problem("connection", `There is no database ${missing}; run: pawl migrate`)];
    const store = await openStore(settings.url, storeOptionsOf(settings));
    try {
      return [...localChecks, ...(await checkDatabase(store))];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [...localChecks, problem("connection", sentenceOf(error))];
  }
}

function checkNode(): Check {
  const { node } = process.versions;
  return Number.parseInt(node, 10) >= minNodeVersion
    ? ok("node", node)
    : problem("node", `${node} is too old; Pawl needs ${minNodeVersion} or later.`);
}

function checkSettings({ url, urlSource, configFile }: Settings): Check {
  const from = urlSource === "default" ? "the default" : `from ${urlSource}`;
  const file = configFile === null ? "no configuration file" : configFile;
  return ok("settings", `${redactUrl(url)} (${from}); ${file}`);
}

const driverPackages: Readonly<Record<string, string>> = {
  sqlite: isBuiltin("node:sqlite") ? "node:sqlite" : "better-sqlite3",
  libsql: "libsql",
  file: "libsql",
  postgres: "pg",
  postgresql: "pg",
  mysql: "mysql2",
  mariadb: "mysql2",
};

const inMemoryUrls: Readonly<Record<string, string>> = {
  sqlite: "sqlite::memory:",
  libsql: "libsql::memory:",
  file: "libsql::memory:",
};

/**
 * Opens an in-memory database or the server to see whether the driver loads. A server that does not answer fails the
 * connection check, not this one.
 */
async function checkDriver(settings: Settings): Promise<Check> {
  const { url } = settings;
  const scheme = url.split(":")[0]?.toLowerCase() ?? "";
  const isServer = isRemoteUrl(url);
  const name = isServer ? "@libsql/client" : driverPackages[scheme];
  if (name === undefined) return ok("driver", "none is needed");
  try {
    const probeUrl = isServer ? url : (inMemoryUrls[scheme] ?? url);
    await (await openStore(probeUrl, probeUrl === url ? storeOptionsOf(settings) : {})).close();
  } catch (error) {
    if (isMissingPackage(error)) return problem("driver", sentenceOf(error));
  }
  return ok("driver", name);
}

function isMissingPackage(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") return true;
  return cause !== undefined && cause !== null && isMissingPackage(cause);
}

async function checkDatabase(store: Store): Promise<Check[]> {
  const before = systemRuntime.now();
  const now = await store.now();
  const after = systemRuntime.now();
  const connection = ok("connection", `${store.description}, answers in ${durationText(after - before)}`);
  const pendingOrError = await store.pendingMigrations().catch((error: unknown) => error);
  if (!Array.isArray(pendingOrError)) return [connection, problem("migrations", sentenceOf(pendingOrError))];
  if (pendingOrError.length > 0)
    return [connection, problem("migrations", `${formatMigrations(pendingOrError)} not applied; run: pawl migrate`)];
  return [
    connection,
    ok("migrations", "up to date"),
    checkClock(now - (before + after) / 2),
    ...(await checkWorkers(store)),
  ];
}

function checkClock(skewMs: number): Check {
  const by = durationText(Math.abs(Math.round(skewMs)));
  if (Math.abs(skewMs) < maxClockSkewMs) return ok("clock", "the database and this machine agree");
  return warning(
    "clock",
    `the database is ${by} ${skewMs > 0 ? "ahead of" : "behind"} this machine; Pawl uses the database's clock`,
  );
}

async function checkWorkers(store: Store): Promise<Check[]> {
  const { runs } = await store.maintenance.questions.runs({ active: true, ...checkedPage });
  const tasks = await store.tasks(runs.map(({ id }) => id));
  // The workers are read after the tasks, so that they include the owner of every task.
  const [allWorkers, now] = await Promise.all([store.workers(), store.now()]);
  const liveWorkers = allWorkers.filter((worker) => isWorkerLive(worker, now, systemRuntime));
  const expiredWorkers = allWorkers.filter((worker) => worker.live && !isWorkerLive(worker, now, systemRuntime));
  const names = liveWorkers.map(({ name }) => name).join(", ");
  const checks = [
    liveWorkers.length === 0
      ? warning("workers", "none is live; run: pawl worker <file>")
      : ok("workers", `${liveWorkers.length} live: ${names}`),
  ];
  if (expiredWorkers.length > 0)
    checks.push(warning("workers", `lease expired: ${expiredWorkers.map(({ name }) => name).join(", ")}`));
  return [...checks, checkRuns(runs, tasks, allWorkers, liveWorkers), ...(await checkPaused(store))];
}

/** Reports paused runs and paused queues, because only an operator can resume them. */
async function checkPaused(store: Store): Promise<Check[]> {
  const [{ runs: pausedRuns }, queues] = await Promise.all([
    store.maintenance.questions.runs({ status: "paused", ...checkedPage }),
    listQueues(store, systemRuntime),
  ]);
  const byWorkflow = new Map<string, number>();
  for (const { workflow, version } of pausedRuns) increment(byWorkflow, titleOf(workflow, version));
  const pausedCountText = `${pausedRuns.length.toLocaleString("en")}${pausedRuns.length < maxCheckedRuns ? "" : " or more"}`;
  const pausedQueues = queues.filter((queue) => queue.paused !== null && queue.depth > 0);
  const due = new Map(pausedQueues.map(({ name, depth }) => [name, depth]));
  return [
    ...(pausedRuns.length === 0
      ? []
      : [warning("runs", `${pausedCountText} paused: ${formatCounts(byWorkflow)}; see: pawl runs --status paused`)]),
    ...(pausedQueues.length === 0
      ? []
      : [warning("queues", `paused with runs due in them: ${formatCounts(due)}; run: pawl queues --resume <name>`)]),
  ];
}

/** Finds open runs that no live worker can execute or that a dead worker still owns. Paused runs are left out: they wait for an operator. */
function checkRuns(
  runs: readonly RunRecord[],
  tasks: readonly TaskRecord[],
  allWorkers: readonly WorkerRecord[],
  live: readonly WorkerRecord[],
): Check {
  const open = new Map(runs.filter(({ status }) => status !== "paused").map((run) => [run.id, run]));
  const runsWithoutWorker = new Map<string, number>();
  const runsOfDeadWorkers = new Map<string, number>();
  for (const task of tasks) {
    const run = open.get(task.runId);
    if (run === undefined) continue;
    if (task.state === "owned") {
      if (live.some(({ id }) => id === task.owner)) continue;
      increment(runsOfDeadWorkers, allWorkers.find(({ id }) => id === task.owner)?.name ?? "an unknown worker");
    }
    if (!live.some((worker) => canExecute(worker, task, run)))
      increment(runsWithoutWorker, titleOf(run.workflow, run.version));
  }
  const warnings = [
    ...(runsWithoutWorker.size === 0 ? [] : [`no live worker serves: ${formatCounts(runsWithoutWorker)}`]),
    ...(runsOfDeadWorkers.size === 0 ? [] : [`still owned by a dead worker: ${formatCounts(runsOfDeadWorkers)}`]),
  ];
  if (warnings.length > 0) return warning("runs", warnings.join("; "));
  const checkedText =
    runs.length < maxCheckedRuns
      ? "every open run"
      : `each of the latest ${maxCheckedRuns.toLocaleString("en")} open runs`;
  return ok("runs", `${checkedText} has a worker that serves it`);
}

const increment = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
const formatCounts = (counts: ReadonlyMap<string, number>) =>
  [...counts].map(([name, count]) => `${name} (${count})`).join(", ");
