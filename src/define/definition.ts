/** The common form that every authoring style compiles to: a name, settings and a handler. */

import type { RetryPolicy } from "../core/naming/retry-policy.js";
import type { Aliases, DeclaredNode, HeroPolicy } from "../core/run/stored-schema.js";
import type { BatchSettings } from "./batch.js";
import type { WorkflowContext } from "./context.js";
import type { LimitDefinition, LimitKey } from "./limit.js";
import { definitionBrand, type RunnableDefinition } from "./runnable.js";
import type { StandardSchemaV1 } from "./standard-schema.js";
import type { StepHooks } from "./step-hooks.js";

/** The function of a workflow: it gets `ctx` and the input, and its result is the output of the run. */
export type Handler<Input, Output> = (ctx: WorkflowContext<Input>, input: Input) => Output | Promise<Output>;

/** The argument of `onFailure`. */
export interface FailureInfo<Input = unknown> {
  /** The id of the run that fails. */
  readonly runId: string;
  /** The name of its workflow. */
  readonly workflowName: string;
  /** Its input. */
  readonly input: Input;
  /** Why it fails. */
  readonly error: Error;
}

/** Called for every exception in a step, even if the step is retried. If the reporter throws, its exception is only logged. */
export type ErrorReporter = (error: unknown, about: ErrorContext) => void;

/** Where an exception happened. */
export interface ErrorContext {
  /** The id of the run. */
  readonly runId: string;
  /** The name of its workflow. */
  readonly workflowName: string;
  /** The name of the step that threw. */
  readonly step: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
}

/** The steps that a class or graph declares. */
export interface DeclaredStepsInfo {
  /** "chain": the steps run one after another. "graph": steps may run at the same time. */
  readonly kind: "chain" | "graph";
  /** A hash that changes when names, dependencies or cases change. */
  readonly signature: string;
  /** The steps in topological order. */
  readonly nodes: readonly DeclaredNode[];
  /** The queues that are set on steps. */
  readonly queues: readonly string[];
  /** Whether a step has a queue or a priority of its own. */
  readonly hasStepRouting: boolean;
}

/** The authoring style of a workflow. */
export type WorkflowStyle = "function" | "class" | "graph";

/** A workflow, as `workflow(…)` and `graph(…)` return it. `Input` is what `start` takes and `Output` what `result` returns. */
export interface WorkflowDefinition<Input = any, Output = any> extends RunnableDefinition<Input, Output> {
  /** How the workflow was written. */
  readonly style: WorkflowStyle;
  /** The version that its runs need; "" if it has none: its open runs then continue with any code of this name. */
  readonly version: string;
  /** The name of its queue; null: a queue of its own, named like the workflow. */
  readonly queue: string | null;
  /** The default priority of its runs. */
  readonly priority: number;
  /** The default retry policy of its steps. */
  readonly retry: RetryPolicy;
  /** The time limit of a run in milliseconds; null: none. */
  readonly timeoutMs: number | null;
  /** How soon a run must begin, in milliseconds; null: whenever a worker is free. */
  readonly startByMs: number | null;
  /** The tags that each of its runs gets. */
  readonly tags: readonly string[];
  /** The schema of the input; null: none. */
  readonly inputSchema: StandardSchemaV1 | null;
  /** The schema of the output; null: none. */
  readonly outputSchema: StandardSchemaV1 | null;
  /** Called when a run fails; null: not set. */
  readonly onFailure: ((info: FailureInfo<any>) => unknown) | null;
  /** Called for every exception in a step; null: not set. */
  readonly onError: ErrorReporter | null;
  /** The hooks of a function or a graph; null if it has none, and for a class, whose hooks are methods. */
  readonly hooks: StepHooks | null;
  /** The rules for the heroes of its runs. */
  readonly hero: HeroPolicy;
  /** The former names of renamed steps; null: none was renamed. */
  readonly aliases: Aliases | null;
  /** The limits in which each of its runs needs a slot. */
  readonly limits: readonly LimitDefinition[];
  /** Runs with different keys get their turns independently of each other; null: there is nothing to share fairly. */
  readonly fairBy: LimitKey | null;
  /** How its starts are gathered in batches; null: each start has a run of its own. */
  readonly batch: BatchSettings | null;
  /** The steps that a class or graph declares; null for a function, whose steps are known only as its code runs. */
  readonly declared: DeclaredStepsInfo | null;
  /** For a job: the delay in milliseconds before its node is tried again after this error; null: the node has failed. */
  readonly nodeRetryDelayMs: ((error: unknown, input: any, random: number) => number | null) | null;
  /** The code of the workflow. */
  readonly handler: Handler<any, Output>;
}

export function isDefinition(value: unknown): value is WorkflowDefinition {
  return (
    typeof value === "object" && value !== null && (value as Partial<WorkflowDefinition>)[definitionBrand] === true
  );
}
