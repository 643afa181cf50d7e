/** An instance of a workflow class, which Pawl makes for each execution of a step: what its steps see in `this`. */
import type { Awaitable } from "../awaitable.js";
import type { WorkflowContext } from "../context.js";
import type { StepExecution } from "../step-hooks.js";

/** Everything of `ctx`: what a step asks for through it is recorded as a part of the step. */
export interface InstanceContext<Hero, Input, Output> extends Omit<WorkflowContext<Input>, "finish"> {
  /** Who the run is about, loaded afresh for this execution. */
  readonly hero: Hero;
  /** The same for every attempt at this step of this run: hand it to the payment provider. */
  readonly idempotencyKey: string;
  /** Ends the run, completed with this output. */
  finish(output?: Output): never;
}

/** An instance of a workflow class: its context, and the hooks that a class may override. */
export interface WorkflowInstance<Hero, Input, Output> extends InstanceContext<Hero, Input, Output> {
  /** Carries the type only. */
  readonly __output?: Output;
  beforeStepExecution(execution: StepExecution): Awaitable<void>;
  afterStepExecution(execution: StepExecution): Awaitable<void>;
  aroundStepExecution(execution: StepExecution, next: () => Promise<void>): Awaitable<void>;
}

export type AnyInstance = WorkflowInstance<any, any, any>;
export type WorkflowClass<W extends WorkflowInstance<any, any, any> = AnyInstance> = new () => W;
