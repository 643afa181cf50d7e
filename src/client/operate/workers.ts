/** Workers as people see them: where they are, whether they were heard of lately, what they can execute. */

import { frozenDagVersion, graphRoute, jobWorkflow } from "../../core/naming/route.js";
import type { Runtime } from "../../runtime/runtime.js";
import { isWorkerLive } from "../../store/contract/live-workers.js";
import type { Route, WorkerRecord } from "../../store/contract/store.js";

export interface WorkerHealth {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** On which its process can be asked how it is, if it said so. */
  readonly port: number | null;
  /** It was heard of lately. */
  readonly live: boolean;
  readonly startedAt: Date;
  /** When it was last heard of. */
  readonly heartbeatAt: Date;
  /** How long it may be silent before others take its runs. */
  readonly leaseMs: number;
  /** Runs that it executes, of all its workflows. */
  readonly executing: number;
  readonly workflows: readonly { readonly name: string; readonly version: string }[];
  readonly jobs: readonly string[];
  /** It takes care of graphs that were built at run time. */
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

/** The routes that claims know are more than the workflows and jobs that users wrote. */
export function capabilitiesOf(routes: readonly Route[]): WorkerCapabilities {
  const graphs = routes.some(({ workflow }) => workflow === graphRoute);
  const isJobRoute = ({ workflow }: Route) => graphs && workflow.startsWith(jobPrefix);
  const workflows = new Map<string, { readonly name: string; readonly version: string }>();
  for (const route of routes) {
    // Behind a tab is the queue of a step; a route that would be too long is nothing but a number behind a tab.
    const [name] = route.workflow.split("\t") as [string];
    if (name !== "" && !isJobRoute(route))
      workflows.set(titleOf(name, route.version), { name, version: route.version });
  }
  const jobs = routes.filter(isJobRoute).map(({ workflow }) => workflow.slice(jobPrefix.length));
  return { workflows: [...workflows].sort(byTitle).map(([, one]) => one), jobs: jobs.sort(), graphs };
}

const byTitle = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);

/** What a run is a run of, in words. */
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
