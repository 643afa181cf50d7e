/** By what a run's task is known to those who look for work: its workflow, or its workflow and the queue of its next step. */
import { childRunId } from "./ids.js";

/** The shortest key column among the stores. */
const longestRouteBytes = 255;

export function routeOf(workflow: string, queue: string | null): string {
  if (queue === null) return workflow;
  // No name contains a tab, so no route is the name of another workflow.
  const route = `${workflow}\t${queue}`;
  return Buffer.byteLength(route) <= longestRouteBytes ? route : `\t${childRunId("route", route, 0)}`;
}
