/** What workers serve, for people: the routes that claims know are more than the workflows and jobs that somebody wrote. */
import { frozenVersion, graphRoute, jobWorkflow } from "../core/route.js";
import type { Route } from "../store/store.js";

export interface Served {
  readonly workflows: readonly Route[];
  readonly jobs: readonly string[];
  /** It takes care of graphs that were built at run time. */
  readonly graphs: boolean;
}

const jobMark = jobWorkflow("");

export function servedBy(routes: readonly Route[]): Served {
  const graphs = routes.some(({ workflow }) => workflow === graphRoute);
  const isOfJob = ({ workflow }: Route) => graphs && workflow.startsWith(jobMark);
  const workflows = new Map<string, Route>();
  for (const route of routes) {
    // Behind a tab is the queue of a step; a route that would be too long is nothing but a number behind a tab.
    const [workflow] = route.workflow.split("\t") as [string];
    if (workflow !== "" && !isOfJob(route))
      workflows.set(nameOf(workflow, route.version), { workflow, version: route.version });
  }
  const jobs = routes.filter(isOfJob).map(({ workflow }) => workflow.slice(jobMark.length));
  return { workflows: [...workflows].sort(byName).map(([, route]) => route), jobs: jobs.sort(), graphs };
}

/** "Onboarding, order 2; jobs: Double, Notify" */
export function inWords({ workflows, jobs, graphs }: Served): string {
  const names = workflows.map(({ workflow, version }) => nameOf(workflow, version)).join(", ");
  const ofGraphs = jobs.length > 0 ? `jobs: ${jobs.join(", ")}` : graphs ? "graphs" : "";
  return [names, ofGraphs].filter((part) => part !== "").join("; ");
}

/** What a run is a run of. */
export function nameOf(workflow: string, version: string): string {
  if (version === frozenVersion) return `graph ${workflow}`;
  return version === "" ? workflow : `${workflow} ${version}`;
}

const byName = ([a]: readonly [string, Route], [b]: readonly [string, Route]) => (a < b ? -1 : 1);
