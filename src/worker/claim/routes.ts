/** Computes the routes by which a worker claims runs of its workflows, limited to the queues that it takes runs from. */

import { routeOf } from "../../core/naming/route.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { stepQueues } from "../../define/step-queues.js";
import type { Route } from "../../store/contract/store.js";

export interface QueuedRoute extends Route {
  /** The queue of the route; null for graphs that were built at run time, which have no queue that could be paused. */
  readonly queue: string | null;
}

/**
 * @param queues the queues that the worker takes runs from; null: all
 * @param rememberedQueues by workflow, the queues that its steps had in earlier versions of the code
 */
export function routesOf(
  definitions: Iterable<WorkflowDefinition>,
  queues: ReadonlySet<string> | null,
  rememberedQueues: ReadonlyMap<string, readonly string[]>,
): QueuedRoute[] {
  const takesFrom = (queue: string) => queues === null || queues.has(queue);
  const routes: QueuedRoute[] = [];
  for (const { name, version, queue, declared } of definitions) {
    const mainQueue = queue ?? name;
    if (takesFrom(mainQueue)) routes.push({ workflow: name, version, queue: mainQueue });
    for (const stepQueue of stepQueues(declared, rememberedQueues.get(name)))
      if (takesFrom(stepQueue)) routes.push({ workflow: routeOf(name, stepQueue), version, queue: stepQueue });
  }
  return routes;
}
