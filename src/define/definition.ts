/** What every authoring style compiles to: a name, how its runs are to be treated, and code. */

import type { RetryPolicy } from "../core/naming/retry-policy.js";
import type { Aliases, DeclaredNode, HeroPolicy } from "../core/run/stored-schema.js";
import type { WorkflowContext } from "./context.js";
import { definitionBrand, type RunnableDefinition } from "./runnable.js";
import type { StandardSchemaV1 } from "./standard-schema.js";
import type { StepHooks } from "./step-hooks.js";

export type Handler<Input, Output> = (ctx: WorkflowContext<Input>, input: Input) => Output | Promise<Output>;

export interface FailureInfo<Input = unknown> {
  readonly runId: string;
  readonly workflowName: string;
  readonly input: Input;
  readonly error: Error;
}

/** Told of every exception in a step, whatever becomes of it. What it throws is logged and changes nothing. */
export type ErrorReporter = (error: unknown, about: ErrorContext) => void;

export interface ErrorContext {
  readonly runId: string;
  readonly workflowName: string;
  readonly step: string;
  readonly attempt: number;
}

/** What there is to know beforehand about the steps of a workflow. */
export interface DeclaredStepsInfo {
  readonly kind: "chain" | "graph";
  /** Changes when names, dependencies or cases do. */
  readonly signature: string;
  /** Each after those that it depends on. */
  readonly nodes: readonly DeclaredNode[];
  /** Queues that some steps have of their own. */
  readonly queues: readonly string[];
  /** Some step has a queue or a priority of its own. */
  readonly hasStepRouting: boolean;
}

/** How a workflow was written. */
export type WorkflowStyle = "function" | "class" | "graph";

/** `Input` is what `start` takes and `Output` what `result` gives. */
export interface WorkflowDefinition<Input = any, Output = any> extends RunnableDefinition<Input, Output> {
  readonly style: WorkflowStyle;
  /** "" when the definition does not say: then open runs go on with whatever code has this name. */
  readonly version: string;
  /** null: a queue of its own name. */
  readonly queue: string | null;
  readonly priority: number;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | null;
  readonly tags: readonly string[];
  readonly inputSchema: StandardSchemaV1 | null;
  readonly outputSchema: StandardSchemaV1 | null;
  readonly onFailure: ((info: FailureInfo<any>) => unknown) | null;
  readonly onError: ErrorReporter | null;
  /** Of a function or a graph: a class has methods for that. null: none. */
  readonly hooks: StepHooks | null;
  readonly hero: HeroPolicy;
  /** For each name of a step in the code, the names that it had before; null: none was renamed. */
  readonly aliases: Aliases | null;
  /** null: its steps are not declared, but found out as its code runs. */
  readonly declared: DeclaredStepsInfo | null;
  /** Of a job: in how many milliseconds its node is tried again after this error; null: it has failed for good. */
  readonly nodeRetryDelayMs: ((error: unknown, input: any, random: number) => number | null) | null;
  readonly handler: Handler<any, Output>;
}

export function isDefinition(value: unknown): value is WorkflowDefinition {
  return (
    typeof value === "object" && value !== null && (value as Partial<WorkflowDefinition>)[definitionBrand] === true
  );
}
