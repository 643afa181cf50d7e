/** Describes workers for users: where they run, whether they are live, and which workflows and jobs they execute. */

import { frozenDagVersion, graphRoute, jobWorkflow } from "../../core/naming/route.js";
import type { Runtime } from "../../runtime/runtime.js";
import { isWorkerLive } from "../../store/contract/live-workers.js";
import type { Route, WorkerRecord } from "../../store/contract/store.js";

/** A worker, as `pawl.workers()` returns it. */
export interface WorkerHealth {
  /** The id of the worker. */
  readonly id: string;
  /** The name of the worker. */
  readonly name: string;
  /** The host that its process runs on. */
  readonly host: string;
  /** The id of its process. */
  readonly pid: number;
  /** The `port` option of the worker, for health checks and metrics of its process; null if it was not set. */
  readonly port: number | null;
  /** Whether its lease has not expired. */
  readonly live: boolean;
  /** When it started. */
  readonly startedAt: Date;
  /** When it sent its last heartbeat. */
  readonly heartbeatAt: Date;
  /** How long after a heartbeat its lease expires, in milliseconds. Other workers then take its runs. */
  readonly leaseMs: number;
  /** The number of runs that it was executing as of its last heartbeat, over all its workflows; 0 if it is dead. */
  readonly executing: number;
  /**
   * How long the event loop of its process was blocked at the longest between its last two heartbeats, in milliseconds; null
   * if it is dead or has sent no heartbeat yet.
   */
  readonly loopLagMs: number | null;
  /** The workflows that it executes. */
  readonly workflows: readonly {
    /** The name of the workflow. */
    readonly name: string;
    /** The version of the workflow; "" if it has none. */
    readonly version: string;
  }[];
  /** The names of the jobs that it executes. */
  readonly jobs: readonly string[];
  /** Whether it coordinates graphs that were built at run time. */
  readonly graphs: boolean;
}

export function healthOf(worker: WorkerRecord, now: number, runtime: Runtime): WorkerHealth {
  const { id, name, host, pid, port, startedAt, heartbeatAt, leaseMs, routes } = worker;
  return {
    id,
    name,
    host,
    pid,
    port,
    live: isWorkerLive(worker, now, runtime),
    startedAt: new Date(startedAt),
    heartbeatAt: new Date(heartbeatAt),
    leaseMs,
    executing: executingCountOf(worker),
    loopLagMs: worker.loopLagMs,
    ...capabilitiesOf(routes),
  };
}

export const executingCountOf = ({ executing }: WorkerRecord): number =>
  executing.reduce((sum, { count }) => sum + count, 0);

type WorkerCapabilities = Pick<WorkerHealth, "workflows" | "jobs" | "graphs">;

const jobPrefix = jobWorkflow("");

/** Finds the workflows and jobs of a worker from its routes. Some routes are for queues of steps and for graphs. */
export function capabilitiesOf(routes: readonly Route[]): WorkerCapabilities {
  const graphs = routes.some(({ workflow }) => workflow === graphRoute);
  const isJobRoute = ({ workflow }: Route) => graphs && workflow.startsWith(jobPrefix);
  const workflows = new Map<string, { readonly name: string; readonly version: string }>();
  for (const route of routes) {
    // In the route of a step's queue, a tab and the queue follow the name of the workflow. A route that would be too long is
    // replaced by a tab and a hash, so its name is empty here.
    const [name] = route.workflow.split("\t") as [string];
    if (name !== "" && !isJobRoute(route))
      workflows.set(titleOf(name, route.version), { name, version: route.version });
  }
  const jobs = routes.filter(isJobRoute).map(({ workflow }) => workflow.slice(jobPrefix.length));
  return { workflows: [...workflows].sort(byTitle).map(([, workflow]) => workflow), jobs: jobs.sort(), graphs };
}

const byTitle = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);

/** Returns a text that names the workflow and version of a run, or its built graph, for display. */
export function titleOf(workflow: string, version: string): string {
  if (version === frozenDagVersion) return `graph ${workflow}`;
  return version === "" ? workflow : `${workflow} ${version}`;
}

/** Returns a text such as "Onboarding, order 2; jobs: Double, Notify". */
export function describeCapabilities({ workflows, jobs, graphs }: WorkerCapabilities): string {
  const names = workflows.map(({ name, version }) => titleOf(name, version)).join(", ");
  const graphText = jobs.length > 0 ? `jobs: ${jobs.join(", ")}` : graphs ? "graphs" : "";
  return [names, graphText].filter((part) => part !== "").join("; ");
}
