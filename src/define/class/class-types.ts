/** Types that are derived from workflow classes, for declaring their steps and for starting them. */

import type { Awaitable } from "../awaitable.js";
import type { BatchOptions, ElementOf } from "../batch.js";
import type { AnyInstance, WorkflowClass, WorkflowInstance } from "./workflow-instance.js";

/** The names of the methods that a class adds to `Workflow`. */
export type MethodName<W> = ExpandedNames<
  {
    [Name in Exclude<keyof W, keyof AnyInstance>]: W[Name] extends (...args: any[]) => unknown ? Name : never;
  }[Exclude<keyof W, keyof AnyInstance>]
>;

/** Makes the compiler list the names in its errors, instead of `MethodName<…>`. */
type ExpandedNames<Names> = Names extends infer Name extends string ? Name : never;

/** The names of the boolean members that a class adds: getters, properties and methods. */
export type ConditionName<W> = {
  [Name in Exclude<keyof W, keyof AnyInstance>]: W[Name] extends boolean | (() => Awaitable<boolean>) ? Name : never;
}[Exclude<keyof W, keyof AnyInstance>] &
  string;

/**
 * A condition of `cancelIf`, `skipIf` or `if`: a function, the name of a boolean member of the class, or a boolean. The
 * worker evaluates it before each attempt at the step.
 */
export type Condition<W> = boolean | ConditionName<W> | ((w: W) => Awaitable<boolean>);

/** The type of the hero of a workflow class. */
export type HeroOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<infer Hero, any, any>> ? Hero : never;
/** The type of the input of a workflow class: what `start` takes. */
export type InputOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<any, infer Input, any>> ? OfOneStart<C, Input> : never;
/** The type of the output of a workflow class: what `result` returns. */
export type OutputOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<any, any, infer Output>> ? OfOneStart<C, Output> : never;

/** The code of a class with `static batch` has lists of inputs and outputs; a start has one of each. */
type OfOneStart<C, List> = C extends { readonly batch: BatchOptions } ? ElementOf<List> : List;

/** The `heroType` of a class. With `static readonly heroType = "User"` it is the literal "User", so no other type compiles. */
export type HeroTypeOf<C> = C extends { readonly heroType: infer Type extends string } ? Type : string;

/** Whether a run may be started without a hero: true if the hero's type allows null or undefined. */
export type MayLackHero<Hero> = unknown extends Hero
  ? true
  : null extends Hero
    ? true
    : undefined extends Hero
      ? true
      : false;
