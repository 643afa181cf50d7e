/** What the registry knows of a workflow, for those who do not have its code. */
import { routeOf } from "../core/route.js";
import { anyHero, type DeclaredNode, type HeroPolicy } from "../define/definition.js";
import type { WorkflowRecord } from "../store/store.js";

export interface Registration {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly tags: readonly string[];
  /** Queues that its steps have, or once had. */
  readonly queues: readonly string[];
  readonly hero: HeroPolicy;
  /** The steps that it declares; null when they are found out as its code runs. */
  readonly nodes: readonly DeclaredNode[] | null;
}

export function registrationOf({ queue, version, graph }: WorkflowRecord): Registration {
  const defaults = graph === null ? {} : (JSON.parse(graph) as Partial<Registration>);
  const { priority = 0, tags = [], queues = [], hero = anyHero, nodes = null } = defaults;
  return { queue, version, priority, tags, queues, hero, nodes };
}

export interface RouteOfQueue {
  /** What its tasks are known by to claims. */
  readonly route: string;
  readonly queue: string;
}

/** All routes that tasks of a workflow may have: that of the workflow itself comes first, then those of its steps. */
export function routesOf(workflow: WorkflowRecord): RouteOfQueue[] {
  const { queue, queues } = registrationOf(workflow);
  const ofSteps = queues.map((one) => ({ route: routeOf(workflow.name, one), queue: one }));
  return [{ route: workflow.name, queue }, ...ofSteps];
}
