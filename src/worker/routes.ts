/** What a worker may be asked for: the routes of its workflows, as far as their queues are its business. */
import { routeOf } from "../core/route.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { Route } from "../store/store.js";

/** @param queues null: all. `remembered`: queues that steps of a workflow had in earlier versions of its code. */
export function routesOf(
  definitions: Iterable<WorkflowDefinition>,
  queues: ReadonlySet<string> | null,
  remembered: ReadonlyMap<string, readonly string[]>,
): Route[] {
  const serves = (queue: string) => queues === null || queues.has(queue);
  const routes: Route[] = [];
  for (const { name, version, queue, declared } of definitions) {
    if (serves(queue ?? name)) routes.push({ workflow: name, version });
    const own = new Set([...(declared?.queues ?? []), ...(remembered.get(name) ?? [])]);
    for (const one of own) if (serves(one)) routes.push({ workflow: routeOf(name, one), version });
  }
  return routes;
}
