/**
 * The route of a task is the text by which workers claim the task: the name of the run's workflow, followed by the queue of
 * the run's next step if that step has a queue of its own.
 */
import { childRunId } from "./ids.js";

/**
 * A longer route is replaced by a hash: the shortest key column of all stores has 255 bytes, of which the route of a class
 * needs 38 (`classRouteOf`).
 */
const maxRouteBytes = 217;

/**
 * No name contains a tab. So a route without one is the name of the run's workflow, and no other route equals the name of a
 * workflow.
 */
export const routeSeparator = "\t";
/** The route of all runs of frozen graphs. They have no code of their own: a worker with `jobs` executes them. */
export const graphRoute = "\tgraph";
/** The version of runs of frozen graphs. No definition can have it, because no name contains a tab. */
export const frozenDagVersion = "\tfrozen";
/** The name of the workflow whose runs execute this job. */
export const jobWorkflow = (job: string): string => `${jobPrefix}${job}`;
const jobPrefix = "job:";
/** The job that runs of this workflow execute; null when the workflow is not that of a job. */
export const jobOf = (workflow: string): string | null =>
  workflow.startsWith(jobPrefix) ? workflow.slice(jobPrefix.length) : null;

/** @param queue the queue of the run's next step; null when that step has no queue of its own */
export function routeOf(workflow: string, queue: string | null): string {
  if (queue === null) return workflow;
  const route = `${workflow}${routeSeparator}${queue}`;
  return Buffer.byteLength(route) <= maxRouteBytes ? route : `${routeSeparator}${childRunId("route", route, 0)}`;
}

/**
 * While a run of a workflow with limits waits for its turn, its task has the route of its class, which no ordinary claim reads.
 * It begins with the route that the task had before and gets back when a worker becomes its owner.
 */
export const classRouteOf = (route: string, classHash: string): string => `${route}${classSeparator}${classHash}`;

/** No route contains two tabs in a row, because neither names nor hashes contain tabs. */
export const classSeparator = "\t\t";

/** Whether the route is that of a class. */
export const isClassRoute = (route: string): boolean => route.includes(classSeparator);

/** The routes of all classes of a route are in this range: from the first text, and less than the second. */
export const classRouteRangeOf = (route: string): readonly [from: string, to: string] => [
  `${route}${classSeparator}`,
  `${route}\t\n`,
];

/** The route that a task had before it was given to a class; any other route is returned as it is. */
export function baseRouteOf(route: string): string {
  const end = route.indexOf(classSeparator);
  return end === -1 ? route : route.slice(0, end);
}
