/**
 * What a call that runs a workflow has to know of its type: what it takes and what it gives. `ctx` is a part of every
 * definition and class, so it cannot be written in terms of them.
 */

/** Brands definitions, so that `discoverWorkflows` finds them in a module whichever copy of Pawl made them. */
export const definitionBrand: unique symbol = Symbol.for("pawl.definition");

/** Of a `WorkflowDefinition`: `Input` is what `start` takes and `Output` what `result` gives. */
export interface RunnableDefinition<Input, Output> {
  readonly [definitionBrand]: true;
  readonly name: string;
  readonly handler: (ctx: any, input: any) => Output | Promise<Output>;
  /** Carries the type only. */
  readonly __input?: (input: Input) => void;
}

/** Of a class that extends `Workflow`. */
export type RunnableClass<Input, Output> = new () => {
  readonly input: Input;
  readonly hero: any;
  readonly executionId: string;
  readonly idempotencyKey: string;
  /** Carries the type only. */
  readonly __output?: Output;
};
