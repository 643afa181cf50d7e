/** The type of `w`, the instance of a workflow class. Pawl makes a new instance for each execution of a step. */
import type { Awaitable } from "../awaitable.js";
import type { WorkflowContext } from "../context.js";
import type { StepExecution } from "../step-hooks.js";

/** The members of `ctx`, and the hero. Durable calls that a step makes are recorded as parts of the step. */
export interface InstanceContext<Hero, Input, Output> extends Omit<WorkflowContext<Input>, "finish"> {
  /** The hero of the run, loaded by `loadHero` for this execution. */
  readonly hero: Hero;
  /** A key for requests to other services, such as a payment provider. It is the same for all attempts at this step of this run. */
  readonly idempotencyKey: string;
  /** Completes the run with this output. */
  finish(output?: Output): never;
}

/** An instance of a workflow class: its context, and the hooks that a class may override. */
export interface WorkflowInstance<Hero, Input, Output> extends InstanceContext<Hero, Input, Output> {
  /** Exists only for the compiler, to carry the type of the output; never set. */
  readonly __output?: Output;
  /** Called before each execution of a step, after its conditions were checked. If it throws, the step does not run. */
  beforeStepExecution(execution: StepExecution): Awaitable<void>;
  /** Called after each execution of a step, however it ended. */
  afterStepExecution(execution: StepExecution): Awaitable<void>;
  /** Called around each execution of a step. It must call `next`, which runs the step. */
  aroundStepExecution(execution: StepExecution, next: () => Promise<void>): Awaitable<void>;
}

/** An instance of any workflow class. */
export type AnyInstance = WorkflowInstance<any, any, any>;
/** A class that extends `Workflow`. */
export type WorkflowClass<W extends WorkflowInstance<any, any, any> = AnyInstance> = new () => W;
