/** Lists, pauses and resumes queues. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { checkName, checkReason } from "../../core/naming/names.js";
import type { Runtime } from "../../runtime/runtime.js";
import { isWorkerLive } from "../../store/contract/live-workers.js";
import type { PausedQueue, RouteBacklog, Store, WorkerRecord, WorkflowRecord } from "../../store/contract/store.js";
import { routesOf } from "../start/registration.js";
import { isShapeRecord } from "./shape-registry.js";

/** A queue, as `pawl.queues()` returns it. */
export interface QueueInfo {
  /** The name of the queue. */
  readonly name: string;
  /** The names of the workflows that use the queue for their runs or for some of their steps. */
  readonly workflows: readonly string[];
  /** The number of runs that are due and that no worker executes. See `depthCapped`. */
  readonly depth: number;
  /** Whether more runs are due than `depth` says: about 10,000 are counted of each workflow and version. */
  readonly depthCapped: boolean;
  /** How long the oldest of them has been due, in milliseconds; null if there are none. */
  readonly oldestAgeMs: number | null;
  /** The number of runs that are being executed, as of the last heartbeats of the workers. */
  readonly executing: number;
  /** The names of the live workers that take runs from the queue, or would take them if it were not paused. */
  readonly workers: readonly string[];
  /** The pause of the queue; null if it is not paused. */
  readonly paused: {
    /** When it was paused. */
    readonly at: Date;
    /** Why it was paused; null if no reason was given. */
    readonly reason: string | null;
    /** Who paused it; null if that is not known. */
    readonly by: string | null;
  } | null;
}

/** The maximum number of due runs that are counted of each workflow and version. */
export const maxBacklog = 10_000;

export async function listQueues(store: Store, runtime: Runtime): Promise<QueueInfo[]> {
  const [workflows, pausedQueues, backlog, workers, now] = await Promise.all([
    store.maintenance.workflows(),
    store.maintenance.pausedQueues(),
    store.maintenance.backlog({ cap: maxBacklog }),
    store.workers(),
    store.now(),
  ]);
  const liveWorkers = workers.filter((worker) => isWorkerLive(worker, now, runtime));
  const queues = queuesOf(workflows);
  // A paused queue is listed even if no workflow uses it any more, because an operator may want to resume it.
  for (const { name } of pausedQueues) if (!queues.has(name)) queues.set(name, { workflows: [], routes: new Set() });
  return [...queues]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { workflows: names, routes }]) => ({
      name,
      workflows: [...new Set(names)].sort(),
      ...loadOf(routes, { backlog, workers, now }),
      workers: workersForRoutes(routes, liveWorkers).map((worker) => worker.name),
      paused: pauseInfoOf(pausedQueues.find((queue) => queue.name === name)),
    }));
}

interface QueueRoutes {
  readonly workflows: string[];
  readonly routes: Set<string>;
}

function queuesOf(workflows: readonly WorkflowRecord[]): Map<string, QueueRoutes> {
  const queues = new Map<string, QueueRoutes>();
  for (const workflow of workflows) {
    if (isShapeRecord(workflow)) continue;
    for (const { queue, route } of routesOf(workflow)) {
      const entry = queues.get(queue) ?? { workflows: [], routes: new Set() };
      entry.workflows.push(workflow.name);
      entry.routes.add(route);
      queues.set(queue, entry);
    }
  }
  return queues;
}

/** The load of a queue. */
export interface QueueLoad {
  /** The number of runs that are due and that no worker executes. See `depthCapped`. */
  readonly depth: number;
  /** Whether more runs are due than `depth` says: about 10,000 are counted of each workflow and version. */
  readonly depthCapped: boolean;
  /** How long the oldest of them has been due, in milliseconds; null if there are none. */
  readonly oldestAgeMs: number | null;
  /** The number of runs that are being executed, as of the last heartbeats of the workers. */
  readonly executing: number;
}

/** Sums the load of these routes over all versions of their workflows. */
export function loadOf(
  routes: ReadonlySet<string>,
  counts: {
    readonly backlog: readonly RouteBacklog[];
    readonly workers: readonly WorkerRecord[];
    readonly now: number;
  },
): QueueLoad {
  const dueRoutes = counts.backlog.filter(({ route }) => routes.has(route));
  const executedRoutes = counts.workers.flatMap(({ executing }) => executing).filter(({ route }) => routes.has(route));
  const oldestDueAt = Math.min(...dueRoutes.map(({ oldestDueAt }) => oldestDueAt));
  return {
    depth: dueRoutes.reduce((sum, { dueCount }) => sum + dueCount, 0),
    depthCapped: dueRoutes.some(({ isCapped }) => isCapped),
    oldestAgeMs: dueRoutes.length === 0 ? null : Math.max(0, counts.now - oldestDueAt),
    executing: executedRoutes.reduce((sum, { count }) => sum + count, 0),
  };
}

export const workersForRoutes = (routes: ReadonlySet<string>, workers: readonly WorkerRecord[]): WorkerRecord[] =>
  workers.filter((worker) => worker.routes.some(({ workflow }) => routes.has(workflow)));

export const pauseInfoOf = (pausedQueue: PausedQueue | undefined): QueueInfo["paused"] =>
  pausedQueue === undefined
    ? null
    : { at: new Date(pausedQueue.pausedAt), reason: pausedQueue.reason, by: pausedQueue.by };

/** Refuses an unknown name, because an operator who misspells a queue would believe that it is paused. */
export async function pauseQueue(
  store: Store,
  name: string,
  reason: string | undefined,
  options: { readonly by?: string | undefined },
): Promise<void> {
  checkName("queue", name);
  checkOptions("pauseQueue()", options, pauseQueueOptions);
  const by = options.by === undefined ? null : checkName("user", options.by);
  // PostgreSQL cannot store a NUL character in text.
  const checkedReason = checkReason(reason)?.replaceAll("\u0000", "") ?? null;
  const queueNames = [...queuesOf(await store.maintenance.workflows()).keys()].sort();
  if (!queueNames.includes(name)) {
    const list =
      queueNames.length === 0
        ? "there are none yet"
        : `there are ${queueNames.map((queue) => `"${queue}"`).join(", ")}`;
    throw new InvalidInputError(`There is no queue "${name}"; ${list}.`);
  }
  await store.maintenance.pauseQueue(name, checkedReason, by);
}

const pauseQueueOptions = new Set(["by"]);

export async function resumeQueue(store: Store, name: string): Promise<void> {
  await store.maintenance.resumeQueue(checkName("queue", name));
}

/** Returns the pause of the queue that tasks of this route are in; null if the queue is not paused. */
export async function pausedQueueOf(store: Store, workflow: string, route: string): Promise<PausedQueue | null> {
  const pausedQueues = await store.maintenance.pausedQueues();
  if (pausedQueues.length === 0) return null;
  const record = await store.workflow(workflow);
  const queue = record === null ? undefined : routesOf(record).find((queueRoute) => queueRoute.route === route)?.queue;
  return pausedQueues.find(({ name }) => name === queue) ?? null;
}
