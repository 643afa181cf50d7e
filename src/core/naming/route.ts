/** By what a run's task is known to those who look for work: its workflow, or its workflow and the queue of its next step. */
import { childRunId } from "./ids.js";

/** The shortest key column among the stores. */
const maxRouteBytes = 255;

/** By what runs of frozen graphs are known, whatever they are called: they need no code of their own. */
export const graphRoute = "\tgraph";
/** Their version; no definition can have it. */
export const frozenDagVersion = "\tfrozen";
/** The workflow as which the nodes with this job are executed. */
export const jobWorkflow = (job: string): string => `${jobPrefix}${job}`;
const jobPrefix = "job:";
/** The job that runs of this workflow execute; null: it is not a job's. */
export const jobOf = (workflow: string): string | null =>
  workflow.startsWith(jobPrefix) ? workflow.slice(jobPrefix.length) : null;

export function routeOf(workflow: string, queue: string | null): string {
  if (queue === null) return workflow;
  // No name contains a tab, so no route is the name of another workflow.
  const route = `${workflow}\t${queue}`;
  return Buffer.byteLength(route) <= maxRouteBytes ? route : `\t${childRunId("route", route, 0)}`;
}
