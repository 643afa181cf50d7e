/**
 * The types of workflows as the calls of `ctx` that run children see them. The types of definitions and classes refer to the
 * type of `ctx`, so the type of `ctx` refers to these smaller types, to avoid a cycle of imports.
 */

/** Marks definitions. The symbol is global, so definitions made by another copy of the package are recognised. */
export const definitionBrand: unique symbol = Symbol.for("pawl.definition");

/** The part of a `WorkflowDefinition` that its callers need: `Input` is what `start` takes, `Output` what `result` returns. */
export interface RunnableDefinition<Input, Output> {
  /** Marks a definition. */
  readonly [definitionBrand]: true;
  /** The name of the workflow, by which runs and workers refer to it. */
  readonly name: string;
  /** The code of the workflow. */
  readonly handler: (ctx: any, input: any) => Output | Promise<Output>;
  /** Exists only for the compiler, to carry the type of the input; never set. */
  readonly __input?: (input: Input) => void;
}

/** The part of a class that extends `Workflow` that its callers need. */
export type RunnableClass<Input, Output> = new () => {
  /** The input of the run. */
  readonly input: Input;
  /** The hero of the run. */
  readonly hero: any;
  /** The id of this execution of a step. */
  readonly executionId: string;
  /** The idempotency key of this step. */
  readonly idempotencyKey: string;
  /** Exists only for the compiler, to carry the type of the output; never set. */
  readonly __output?: Output;
};
