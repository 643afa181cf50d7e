/** What a worker may be asked for: the routes of its workflows, as far as their queues are its business. */

import { routeOf } from "../../core/naming/route.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { stepQueues } from "../../define/step-queues.js";
import type { Route } from "../../store/contract/store.js";

export interface QueuedRoute extends Route {
  /** null: of no queue, so that it cannot be paused. */
  readonly queue: string | null;
}

/** @param queues null: all. `remembered`: queues that steps of a workflow had in earlier versions of its code. */
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
