/** Metrics of a workflow: success rate, durations, backlog and workers. */

import { WorkflowNotFoundError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { graphRoute } from "../../core/naming/route.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { RunSample, RunStatus, Store } from "../../store/contract/store.js";
import { parseInstant } from "../start/new-run.js";
import { routesOf } from "../start/registration.js";
import { loadOf, maxBacklog, pauseInfoOf, type QueueInfo, type QueueLoad, workersForRoutes } from "./queues.js";
import { healthOf, type WorkerHealth } from "./workers.js";

/** Options of `pawl.metrics`. */
export interface MetricsOptions {
  /** Counts only runs that were created since this instant. Default: one day ago. */
  readonly since?: Date | number;
}

const metricsOptions = new Set<string>(["since"] satisfies (keyof MetricsOptions)[]);

/** The mean and percentiles of durations, in milliseconds; null if there is nothing to measure. */
export interface Distribution {
  /** The arithmetic mean. */
  readonly mean: number | null;
  /** The median. */
  readonly p50: number | null;
  /** 95 % of the values are at most this. */
  readonly p95: number | null;
  /** 99 % of the values are at most this. */
  readonly p99: number | null;
}

/** The metrics of a workflow, as `pawl.metrics` returns them. */
export interface WorkflowMetrics {
  /** The name of the workflow. */
  readonly workflow: string;
  /** The metrics count only runs that were created since this instant. */
  readonly since: Date;
  /**
   * Whether more than 10,000 runs were created since the given instant. If so, the metrics count only the newest 10,000, and
   * `since` is the creation time of the oldest of them.
   */
  readonly truncated: boolean;
  /** The number of runs by status, the number of all runs, and the number of runs that have not ended. */
  readonly runs: Readonly<Record<RunStatus | "total" | "active", number>>;
  /** The share of completed runs among completed and failed runs; null if there are none. */
  readonly successRate: number | null;
  /** The time from the first step to the end of completed runs, including their waits. */
  readonly durations: Distribution;
  /** The time from creation to the first step, including a `delay` or `startAt`. */
  readonly waits: Distribution;
  /** The load of its runs in its queue and in the queues of its steps. */
  readonly queue: QueueLoad & Pick<QueueInfo, "name" | "paused">;
  /** The workers that have the workflow, live and dead. */
  readonly workers: readonly WorkerHealth[];
}

const maxSamples = 10_000;
const dayMs = 86_400_000;

export async function readMetrics(
  store: Store,
  workflow: string,
  options: MetricsOptions,
  runtime: Runtime,
): Promise<WorkflowMetrics> {
  checkOptions("metrics()", options, metricsOptions);
  const now = await store.now();
  const since = options.since === undefined ? now - dayMs : parseInstant("since", options.since);
  const [record, rows] = await Promise.all([
    store.workflow(workflow),
    store.maintenance.runSamples(workflow, { since, limit: maxSamples + 1 }),
  ]);
  // Graphs built at run time have runs but no registration; all of them share one route.
  if (record === null && rows.length === 0) throw new WorkflowNotFoundError(workflow);
  const routes = record === null ? [{ route: graphRoute, queue: workflow }] : routesOf(record);
  const samples = rows.slice(0, maxSamples);
  const truncated = rows.length > maxSamples;
  return {
    workflow,
    since: new Date(truncated ? (samples.at(-1)?.createdAt ?? since) : since),
    truncated,
    ...summarize(samples),
    ...(await readQueueAndWorkers(store, routes, now, runtime)),
  };
}

function summarize(
  samples: readonly RunSample[],
): Pick<WorkflowMetrics, "runs" | "successRate" | "durations" | "waits"> {
  const runs = { total: samples.length, active: 0, pending: 0, running: 0, waiting: 0, paused: 0 };
  const counts: Record<RunStatus | "total" | "active", number> = { ...runs, completed: 0, failed: 0, canceled: 0 };
  const durations: number[] = [];
  const waits: number[] = [];
  for (const { status, createdAt, startedAt, finishedAt } of samples) {
    // A damaged row may have an unknown status; its run is then counted under no status.
    if (Object.hasOwn(counts, status)) counts[status] += 1;
    if (finishedAt === null) counts.active += 1;
    if (startedAt !== null) waits.push(startedAt - createdAt);
    if (status === "completed" && finishedAt !== null) durations.push(finishedAt - (startedAt ?? createdAt));
  }
  const completedOrFailed = counts.completed + counts.failed;
  return {
    runs: counts,
    successRate: completedOrFailed === 0 ? null : counts.completed / completedOrFailed,
    durations: distributionOf(durations),
    waits: distributionOf(waits),
  };
}

function distributionOf(values: number[]): Distribution {
  if (values.length === 0) return { mean: null, p50: null, p95: null, p99: null };
  const sorted = values.sort((a, b) => a - b);
  const percentile = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
  const sum = sorted.reduce((total, value) => total + value, 0);
  return { mean: sum / sorted.length, p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99) };
}

async function readQueueAndWorkers(
  store: Store,
  routes: readonly { readonly route: string; readonly queue: string }[],
  now: number,
  runtime: Runtime,
): Promise<Pick<WorkflowMetrics, "queue" | "workers">> {
  const [backlog, pausedQueues, workers] = await Promise.all([
    store.maintenance.backlog({ cap: maxBacklog }),
    store.maintenance.pausedQueues(),
    store.workers(),
  ]);
  const routeNames = new Set(routes.map(({ route }) => route));
  const name = routes[0]?.queue as string;
  return {
    queue: {
      name,
      ...loadOf(routeNames, { backlog, workers, now }),
      paused: pauseInfoOf(pausedQueues.find((queue) => queue.name === name)),
    },
    workers: workersForRoutes(routeNames, workers).map((worker) => healthOf(worker, now, runtime)),
  };
}
