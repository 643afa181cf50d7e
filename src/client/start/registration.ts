/** What the registry knows of a workflow, for those who do not have its code. */
import { DamagedDataError } from "../../core/errors/errors.js";
import { routeOf } from "../../core/naming/route.js";
import type { DeclaredNode, HeroPolicy, RegisteredWorkflow } from "../../core/run/stored-schema.js";
import { defaultHeroPolicy } from "../../define/hero.js";
import type { WorkflowRecord } from "../../store/contract/store.js";

export interface Registration {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly tags: readonly string[];
  /** Queues that its steps have, or once had. */
  readonly stepQueues: readonly string[];
  readonly hero: HeroPolicy;
  /** The steps that it declares; null when they are found out as its code runs. */
  readonly nodes: readonly DeclaredNode[] | null;
  /** Whether runs go along them one by one. */
  readonly isChain: boolean;
}

/** @throws DamagedDataError: to start a run without the rules that were registered would be worse than not to start it */
export function registrationOf({ name, queue, version, graph }: WorkflowRecord): Registration {
  const registered = parseRegistration(graph);
  if (registered === null) {
    const subject = `The registration of workflow ${JSON.stringify(name)}`;
    throw new DamagedDataError({
      of: subject,
      column: "graph",
      problem: "it is not a description; a worker that has the workflow writes it again when it starts",
    });
  }
  const {
    priority = 0,
    tags = [],
    stepQueues = [],
    hero = defaultHeroPolicy,
    nodes = null,
    isChain = false,
  } = registered;
  return { queue, version, priority, tags, stepQueues, hero, nodes, isChain };
}

export const isReadable = ({ graph }: WorkflowRecord): boolean => parseRegistration(graph) !== null;

/** null when it cannot be read. */
function parseRegistration(graph: string | null): Partial<RegisteredWorkflow> | null {
  try {
    const registered: unknown = JSON.parse(graph ?? "{}");
    return typeof registered === "object" && !Array.isArray(registered) ? registered : null;
  } catch {
    return null;
  }
}

/** Queues that the steps of the workflow have, or once had; none when the row is damaged, so that others are still listed. */
export const stepQueuesOf = ({ graph }: WorkflowRecord): readonly string[] =>
  parseRegistration(graph)?.stepQueues ?? [];

export interface QueueRoute {
  /** What its tasks are known by to claims. */
  readonly route: string;
  readonly queue: string;
}

/** All routes that tasks of a workflow may have: that of the workflow itself comes first, then those of its steps. */
export function routesOf(workflow: WorkflowRecord): QueueRoute[] {
  const ofSteps = stepQueuesOf(workflow).map((one) => ({ route: routeOf(workflow.name, one), queue: one }));
  return [{ route: workflow.name, queue: workflow.queue }, ...ofSteps];
}
