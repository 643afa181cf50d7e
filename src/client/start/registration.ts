/** Reads the registry's record of a workflow, for processes that do not have its code. */
import { DamagedDataError } from "../../core/errors/errors.js";
import { routeOf } from "../../core/naming/route.js";
import type { DeclaredNode, HeroPolicy, RegisteredBatch, RegisteredWorkflow } from "../../core/run/stored-schema.js";
import type { BatchSettings } from "../../define/batch.js";
import { defaultHeroPolicy } from "../../define/hero.js";
import type { WorkflowRecord } from "../../store/contract/store.js";
import type { StartBatching } from "./gathered-starts.js";

export interface Registration {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly startByMs: number | null;
  readonly tags: readonly string[];
  /** The current and former queues of its steps. */
  readonly stepQueues: readonly string[];
  readonly hero: HeroPolicy;
  /** The steps that it declares; null for a function. */
  readonly nodes: readonly DeclaredNode[] | null;
  /** Whether its steps are a chain and run one after another. */
  readonly isChain: boolean;
  /** The JSON Schema of its inputs; null if it is not known. */
  readonly inputSchema: Readonly<Record<string, unknown>> | null;
  /** How its starts are gathered in batches; null if each start has a run of its own. */
  readonly batch: StartBatching;
}

/** @throws DamagedDataError if the record cannot be read, because a run must not start without the registered hero rules */
export function registrationOf({ name, queue, version, graph }: WorkflowRecord): Registration {
  const registered = parseRegistration(graph);
  if (registered === null) {
    const subject = `The registration of workflow ${JSON.stringify(name)}`;
    throw new DamagedDataError({
      of: subject,
      column: "graph",
      problem: "it cannot be parsed; a worker that has the workflow writes it again when it starts",
    });
  }
  const {
    priority = 0,
    startByMs = null,
    tags = [],
    stepQueues = [],
    hero = defaultHeroPolicy,
    nodes = null,
    isChain = false,
    inputSchema = null,
    batch,
  } = registered;
  return {
    queue,
    version,
    priority,
    startByMs,
    tags,
    stepQueues,
    hero,
    nodes,
    isChain,
    inputSchema,
    batch: batchingOf(batch),
  };
}

function batchingOf(batch: RegisteredBatch | undefined): StartBatching {
  if (batch === undefined) return null;
  return batch.key === undefined ? { key: "function" } : { ...batch, key: batch.key };
}

export const registeredBatchOf = ({ key, size, withinMs }: BatchSettings): RegisteredBatch =>
  typeof key === "function" ? { size, withinMs } : { key, size, withinMs };

export const isReadable = ({ graph }: WorkflowRecord): boolean => parseRegistration(graph) !== null;

/** Returns null if the text cannot be parsed. */
function parseRegistration(graph: string | null): Partial<RegisteredWorkflow> | null {
  try {
    const registered: unknown = JSON.parse(graph ?? "{}");
    return typeof registered === "object" && !Array.isArray(registered) ? registered : null;
  } catch {
    return null;
  }
}

/** The current and former queues of its steps. Returns none for a damaged row, so that listing all queues does not fail. */
export const stepQueuesOf = ({ graph }: WorkflowRecord): readonly string[] =>
  parseRegistration(graph)?.stepQueues ?? [];

export interface QueueRoute {
  /** The route by which workers claim the tasks. */
  readonly route: string;
  readonly queue: string;
}

/** Returns all routes that tasks of a workflow may have: first the route of the workflow, then those of its steps' queues. */
export function routesOf(workflow: WorkflowRecord): QueueRoute[] {
  const ofSteps = stepQueuesOf(workflow).map((queue) => ({ route: routeOf(workflow.name, queue), queue }));
  return [{ route: workflow.name, queue: workflow.queue }, ...ofSteps];
}
