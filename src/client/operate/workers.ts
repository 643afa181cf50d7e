/** Workers as users see them: where they run, whether they are live, and which workflows they have. */

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
  /** The number of runs that it executes, of all its workflows. */
  readonly executing: number;
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
  const { id, name, host, pid, port, startedAt, heartbeatAt, leaseMs, ownedTaskCount, routes } = worker;
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
    executing: ownedTaskCount,
    ...capabilitiesOf(routes),
  };
}

type WorkerCapabilities = Pick<WorkerHealth, "workflows" | "jobs" | "graphs">;

const jobPrefix = jobWorkflow("");

/** The workflows and jobs behind the routes of a worker, which has further routes for queues of steps and for graphs. */
export function capabilitiesOf(routes: readonly Route[]): WorkerCapabilities {
  const graphs = routes.some(({ workflow }) => workflow === graphRoute);
  const isJobRoute = ({ workflow }: Route) => graphs && workflow.startsWith(jobPrefix);
  const workflows = new Map<string, { readonly name: string; readonly version: string }>();
  for (const route of routes) {
    // The queue of a step follows a tab. A route that would be too long is only a tab and a hash.
    const [name] = route.workflow.split("\t") as [string];
    if (name !== "" && !isJobRoute(route))
      workflows.set(titleOf(name, route.version), { name, version: route.version });
  }
  const jobs = routes.filter(isJobRoute).map(({ workflow }) => workflow.slice(jobPrefix.length));
  return { workflows: [...workflows].sort(byTitle).map(([, workflow]) => workflow), jobs: jobs.sort(), graphs };
}

const byTitle = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);

/** The workflow and version of a run, or its built graph, for display. */
export function titleOf(workflow: string, version: string): string {
  if (version === frozenDagVersion) return `graph ${workflow}`;
  return version === "" ? workflow : `${workflow} ${version}`;
}

/** "Onboarding, order 2; jobs: Double, Notify" */
export function describeCapabilities({ workflows, jobs, graphs }: WorkerCapabilities): string {
  const names = workflows.map(({ name, version }) => titleOf(name, version)).join(", ");
  const graphText = jobs.length > 0 ? `jobs: ${jobs.join(", ")}` : graphs ? "graphs" : "";
  return [names, graphText].filter((part) => part !== "").join("; ");
}
