/**
 * Explains the runs of a list in one sentence each. The sentences are made from the rows of the runs and their tasks, and
 * from what all of them have in common: the workers, the paused queues and the registered workflows. No log is read.
 */
import { laneOf } from "../../core/limits/lane.js";
import { graphRoute } from "../../core/naming/route.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import type { Runtime } from "../../runtime/runtime.js";
import { canExecute, isWorkerLive } from "../../store/contract/live-workers.js";
import type { PausedQueue, RunRecord, Store, TaskRecord, WorkerRecord } from "../../store/contract/store.js";
import { routesOf } from "../start/registration.js";
import { originOf } from "../start/start-origin.js";

/** Returns the sentences by the ids of the runs. Runs that have ended need none. */
export async function explainRows(
  store: Store,
  runs: readonly RunRecord[],
  runtime: Runtime,
): Promise<ReadonlyMap<string, string>> {
  const openRuns = runs.filter(({ finishedAt }) => finishedAt === null);
  if (openRuns.length === 0) return new Map();
  const [tasks, facts] = await Promise.all([store.tasks(openRuns.map(({ id }) => id)), readFacts(store, runtime)]);
  const taskByRun = new Map(tasks.map((task) => [task.runId, task]));
  const blockedOn = await readBlockedOn(store, tasks);
  const sentences = new Map<string, string>();
  for (const run of openRuns) {
    const task = taskByRun.get(run.id);
    // A run without a task has ended since it was read.
    if (task !== undefined) sentences.set(run.id, explainRow(run, task, { ...facts, blockedOn }));
  }
  return sentences;
}

/** The lanes of limits on which the classes of these tasks are blocked, by class. */
async function readBlockedOn(store: Store, tasks: readonly TaskRecord[]): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(tasks.flatMap(({ classId }) => classId ?? []))];
  if (ids.length === 0) return new Map();
  const classes = await store.limits.classes({ ids }, ids.length);
  return new Map(classes.flatMap(({ id, blockedOn }) => (blockedOn === null ? [] : [[id, blockedOn] as const])));
}

interface CommonFacts {
  readonly now: number;
  readonly workers: readonly WorkerRecord[];
  readonly liveWorkers: readonly WorkerRecord[];
  /** The pauses of queues, by the routes whose tasks are in them. */
  readonly pauseByRoute: ReadonlyMap<string, PausedQueue>;
  readonly blockedOn: ReadonlyMap<string, string>;
}

async function readFacts(store: Store, runtime: Runtime): Promise<Omit<CommonFacts, "blockedOn">> {
  const [now, workers, pausedQueues] = await Promise.all([
    store.now(),
    store.workers(),
    store.maintenance.pausedQueues(),
  ]);
  const workflows = pausedQueues.length === 0 ? [] : await store.maintenance.workflows();
  const pauseByQueue = new Map(pausedQueues.map((pause) => [pause.name, pause]));
  const pauseByRoute = new Map<string, PausedQueue>();
  for (const { route, queue } of workflows.flatMap(routesOf)) {
    const pause = pauseByQueue.get(queue);
    if (pause !== undefined) pauseByRoute.set(route, pause);
  }
  return { now, workers, liveWorkers: workers.filter((worker) => isWorkerLive(worker, now, runtime)), pauseByRoute };
}

function explainRow(run: RunRecord, task: TaskRecord, facts: CommonFacts): string {
  if (task.state === "owned") {
    const worker = facts.workers.find(({ id }) => id === task.owner);
    return `Worker "${worker?.name ?? task.owner}" executes it.`;
  }
  const note = readParkingNote(run.waiting);
  if (run.status === "paused") return `Paused: ${note.paused ?? "no reason is known"}`;
  const isDue = task.state === "ready" || (task.dueAt !== null && task.dueAt <= facts.now);
  if (isDue) return explainDueRow(run, task, facts);
  if (run.status === "pending") return task.dueAt === null ? explainHeld(run) : `It starts at ${iso(task.dueAt)}.`;
  const until = task.dueAt === null ? "" : `, at the latest at ${iso(task.dueAt)}`;
  const waits = note.waitingFor.map(describeWaiting);
  return waits.length === 0 ? `It waits${until}.` : `It waits for ${waits.join("; and for ")}${until}.`;
}

function explainHeld(run: RunRecord): string {
  const { after } = originOf(run);
  return after === undefined ? "It has not been released yet." : `It begins after the end of run ${after}.`;
}

function explainDueRow(run: RunRecord, task: TaskRecord, facts: CommonFacts): string {
  const { liveWorkers, pauseByRoute, blockedOn } = facts;
  const pause = pauseByRoute.get(task.route);
  if (pause !== undefined)
    return `It is due, but its queue "${pause.name}" is paused${pause.reason === null ? "." : `: ${pause.reason}`}`;
  if (liveWorkers.some((worker) => canExecute(worker, task, run))) {
    const lane = blockedOn.get(task.classId ?? "");
    if (lane === undefined) return "It is due, and waits for a free slot.";
    const { limit, key } = laneOf(lane);
    return `It is due, and waits for the limit "${limit}"${key === "" ? "" : ` (key "${key}")`}.`;
  }
  const requirement = task.route === graphRoute ? "jobs" : `workflow "${run.workflow}"`;
  return `It is due, but no live worker has ${requirement}${run.version === "" || task.route === graphRoute ? "" : ` in version "${run.version}"`}.`;
}

function describeWaiting(waiting: Waiting): string {
  switch (waiting.kind) {
    case "sleep":
      return `the end of its sleep "${waiting.name}"`;
    case "signal":
      return `the signal ${waiting.names.map((name) => `"${name}"`).join(", ")}`;
    case "step":
      return `the time of step "${waiting.step}"`;
    case "retry":
      return `attempt ${waiting.attempt} at step "${waiting.step}"`;
    case "child":
      return `its child ${waiting.runId} (workflow "${waiting.workflow}")`;
    case "map":
      return `the children of "${waiting.name}": ${waiting.settled} of ${waiting.count} have ended`;
    case "jobs":
      return `${waiting.open} of its nodes, whose jobs run on other workers`;
    case "reattempt":
      return "its next attempt";
  }
}

const iso = (at: number) => new Date(at).toISOString();
