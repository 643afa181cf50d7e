/** The types of the calls of `ctx` that start other runs, and of their arguments. */
import type { CallOptions } from "./call-options.js";
import type { HeroRef } from "./hero.js";
import type { RunnableClass, RunnableDefinition } from "./runnable.js";

/** A workflow to run as a child: its definition, its class, or the name of a registered workflow. */
export type ChildWorkflow<Input, Output> = RunnableDefinition<Input, Output> | RunnableClass<Input, Output> | string;

/** The arguments after a child workflow. The input may be left out if the child takes none. */
export type ChildArgs<Input, Options> = [Input] extends [void]
  ? [input?: Input, options?: Options]
  : [input: Input, options?: Options];

/** A child run that `ctx.start` has started. */
export interface ChildHandle<Output> {
  /** The id of the child run. */
  readonly runId: string;
  /** Waits for the child and returns its output. Throws RunFailedError or RunCanceledError if it did not complete. */
  result(): Promise<Output>;
}

/** Options of `ctx.run` and `ctx.start`. */
export interface ChildOptions extends CallOptions {
  /** The hero of the child. Children do not count as the one active run of their hero. */
  readonly hero?: HeroRef;
  /** The name of the call in the parent's log. Default: the name of the child workflow. */
  readonly name?: string;
  /** The tags of the child. Default: those of its workflow. */
  readonly tags?: readonly string[];
  /** The priority of the child: workers claim higher ones first. Default: the priority of its workflow. */
  readonly priority?: number;
}

/** Options of `ctx.map`. */
export interface MapOptions extends CallOptions {
  /** The name of the call in the parent's log. Default: the name of the child workflow. */
  readonly name?: string;
  /** How many children may run at the same time. Default: all of them. */
  readonly concurrency?: number;
  /** How many children may fail before the map fails. Default 0. */
  readonly tolerate?: number;
}

/** A child of `ctx.map` that did not complete. */
export interface MapFailure {
  /** The index of its item. */
  readonly index: number;
  /** The id of the child run. */
  readonly runId: string;
  /** A RunFailedError or a RunCanceledError. */
  readonly error: Error;
}

/** The outputs in the order of the items. The output of a child that did not complete is `undefined`; see `failures`. */
export type MapResult<Output> = Output[] & {
  /** The children that did not complete, in the order of their items. */
  readonly failures: readonly MapFailure[];
};
