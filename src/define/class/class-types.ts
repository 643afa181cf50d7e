/** The types that workflow classes are written and started with. */
import type { Awaitable } from "../awaitable.js";
import type { AnyInstance, WorkflowClass, WorkflowInstance } from "./workflow-instance.js";

/** The methods that a class adds. */
export type MethodName<W> = ExpandedNames<
  {
    [Name in Exclude<keyof W, keyof AnyInstance>]: W[Name] extends (...args: any[]) => unknown ? Name : never;
  }[Exclude<keyof W, keyof AnyInstance>]
>;

/** In a message of the compiler, the names themselves and not what they are called here. */
type ExpandedNames<Names> = Names extends infer Name extends string ? Name : never;

/** The members that a class adds and that can tell whether something is so: getters, properties, methods. */
export type ConditionName<W> = {
  [Name in Exclude<keyof W, keyof AnyInstance>]: W[Name] extends boolean | (() => Awaitable<boolean>) ? Name : never;
}[Exclude<keyof W, keyof AnyInstance>] &
  string;

/** Looked at when a step is about to run, and again at each of its attempts. */
export type Condition<W> = boolean | ConditionName<W> | ((w: W) => Awaitable<boolean>);

export type HeroOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<infer Hero, any, any>> ? Hero : never;
export type InputOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<any, infer Input, any>> ? Input : never;
export type OutputOf<C extends WorkflowClass> =
  C extends WorkflowClass<WorkflowInstance<any, any, infer Output>> ? Output : never;

/** With `static readonly heroType = "User"` no other type of hero compiles. */
export type HeroTypeOf<C> = C extends { readonly heroType: infer Type extends string } ? Type : string;

/** Then a run may be started without a hero. */
export type MayLackHero<Hero> = unknown extends Hero
  ? true
  : null extends Hero
    ? true
    : undefined extends Hero
      ? true
      : false;
