/**
 * Checks a database for what keeps runs from moving: missing migrations, clocks that disagree, workers that are gone, runs
 * that no worker can execute, paused runs and queues. `pawl doctor` and the HTTP API show the results.
 */
import { sentenceOf } from "../../core/errors/sentence-of.js";
import { formatDuration } from "../../core/naming/duration.js";
import type { Runtime } from "../../runtime/runtime.js";
import { canExecute, isWorkerLive } from "../../store/contract/live-workers.js";
import type { RunRecord, Store, TaskRecord, WorkerRecord } from "../../store/contract/store.js";
import { findLateSchedules } from "../schedules/late-schedules.js";
import { type Check, maxListedNames, namesText, ok, problem, warning } from "./check.js";
import { checkLimits } from "./doctor-limits.js";
import { listQueues } from "./queues.js";
import { titleOf } from "./workers.js";

/**
 * The database's clock measures delays, and this machine's clock makes dates; users notice a difference of about this
 * size.
 */
const maxClockSkewMs = 2_000;
/** How many open runs are checked. */
const maxCheckedRuns = 1_000;
const checkedPage = { limit: maxCheckedRuns, maxExamined: 10 * maxCheckedRuns } as const;

export async function checkDatabase(store: Store, runtime: Runtime): Promise<Check[]> {
  const before = runtime.now();
  const now = await store.now();
  const after = runtime.now();
  const connection = ok("connection", `${store.description}, answers in ${formatDuration(after - before)}`);
  const pendingOrError = await store.pendingMigrations().catch((error: unknown) => error);
  if (!Array.isArray(pendingOrError)) return [connection, problem("migrations", sentenceOf(pendingOrError))];
  if (pendingOrError.length > 0)
    return [connection, problem("migrations", `${formatMigrations(pendingOrError)} not applied; run: pawl migrate`)];
  return [
    connection,
    ok("migrations", "up to date"),
    checkClock(now - (before + after) / 2),
    ...(await checkWorkers(store, runtime)),
  ];
}

function checkClock(skewMs: number): Check {
  const by = formatDuration(Math.abs(Math.round(skewMs)));
  if (Math.abs(skewMs) < maxClockSkewMs) return ok("clock", "the database and this machine agree");
  return warning(
    "clock",
    `the database is ${by} ${skewMs > 0 ? "ahead of" : "behind"} this machine; Pawl uses the database's clock`,
  );
}

async function checkWorkers(store: Store, runtime: Runtime): Promise<Check[]> {
  const { runs } = await store.maintenance.questions.runs({ active: true, ...checkedPage });
  const tasks = await store.tasks(runs.map(({ id }) => id));
  // The workers are read after the tasks, so that they include the owner of every task.
  const [allWorkers, now] = await Promise.all([store.workers(), store.now()]);
  const liveWorkers = allWorkers.filter((worker) => isWorkerLive(worker, now, runtime));
  const expiredWorkers = allWorkers.filter((worker) => worker.live && !isWorkerLive(worker, now, runtime));
  const names = liveWorkers.map(({ name }) => name).join(", ");
  const checks = [
    liveWorkers.length === 0
      ? warning("workers", "none is live; run: pawl worker <file>")
      : ok("workers", `${liveWorkers.length} live: ${names}`),
  ];
  if (expiredWorkers.length > 0)
    checks.push(warning("workers", `lease expired: ${expiredWorkers.map(({ name }) => name).join(", ")}`));
  return [
    ...checks,
    checkRuns(runs, tasks, allWorkers, liveWorkers),
    ...(await checkPaused(store, runtime)),
    ...(await checkSchedules(store)),
    ...(await checkLimits(store)),
  ];
}

/** A worker looks at due schedules at once, so one that is later than this has no worker. */
const maxLateMs = 60_000;
const maxCheckedSchedules = 1_000;

/** Reports schedules that should have fired, and those that the code does not contain any more. */
async function checkSchedules(store: Store): Promise<Check[]> {
  const [records, late] = await Promise.all([
    store.schedules.list({ after: null, limit: maxCheckedSchedules }),
    findLateSchedules(store, maxListedNames + 1),
  ]);
  if (records.length === 0) return [];
  const retired = records.filter(({ status }) => status === "retired").map(({ name }) => name);
  const tooLate = late.filter(({ lateMs }) => lateMs > maxLateMs);
  const warnings = [
    ...(tooLate.length === 0
      ? []
      : [
          warning(
            "schedules",
            `late: ${namesText(tooLate.map(({ name, lateMs }) => `${name} (${formatDuration(lateMs)})`))}; no live worker that has them keeps up, see: pawl workers`,
          ),
        ]),
    ...(retired.length === 0
      ? []
      : [
          warning(
            "schedules",
            `retired, because the code does not contain them any more: ${namesText(retired)}; run: pawl schedules delete <name>`,
          ),
        ]),
  ];
  if (warnings.length > 0) return warnings;
  const countText = `${records.length.toLocaleString("en")}${records.length < maxCheckedSchedules ? "" : " or more"}`;
  return [ok("schedules", `${countText}, none is late or retired`)];
}

/** Reports paused runs and paused queues, because only an operator can resume them. */
async function checkPaused(store: Store, runtime: Runtime): Promise<Check[]> {
  const [{ runs: pausedRuns }, queues] = await Promise.all([
    store.maintenance.questions.runs({ status: "paused", ...checkedPage }),
    listQueues(store, runtime),
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

/** Formats the numbers of migrations, such as "migration 3" or "migrations 3, 4". */
export const formatMigrations = (numbers: readonly number[]): string =>
  `migration${numbers.length === 1 ? "" : "s"} ${numbers.join(", ")}`;
