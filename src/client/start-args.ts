/** What `start` takes beside the workflow, and what it gives. */
import type { AnyWorkflow } from "../define/as-definition.js";
import type { HeroOf, HeroTypeOf, InputOf, MayLackHero, OutputOf } from "../define/class/class-types.js";
import type { LoadsHeroOf, WorkflowClass } from "../define/class/workflow.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { HeroRef } from "../define/stepping.js";
import type { StartOptions } from "./birth.js";
import type { RunHandle } from "./handle.js";

/** The input may be left out when its type is void. */
export type StartArgs<Input> = [Input] extends [void]
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

type ClassStartOptions<C extends WorkflowClass> = Omit<StartOptions, "hero"> &
  (MayLackHero<HeroOf<C>> extends true
    ? { readonly hero?: HeroRef<HeroTypeOf<C>> }
    : { readonly hero: HeroRef<HeroTypeOf<C>> });

/** A run about a hero needs the hero; an input is needed when there is one. */
type ClassStartArgs<C extends WorkflowClass> =
  MayLackHero<HeroOf<C>> extends true
    ? [InputOf<C>] extends [void]
      ? [input?: InputOf<C>, options?: ClassStartOptions<C>]
      : [input: InputOf<C>, options?: ClassStartOptions<C>]
    : [input: [InputOf<C>] extends [void] ? InputOf<C> | undefined : InputOf<C>, options: ClassStartOptions<C>];

// One signature for definitions and classes: of several overloads, a compiler complains about the last one only, and
// whoever forgot the input of a function was told that it is not a class.

/** What a workflow must be besides: a class loads the hero that it says it has. */
export type Startable<W extends AnyWorkflow> = [W] extends [WorkflowClass] ? LoadsHeroOf<W> : unknown;

export type StartArgsOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input>]
  ? StartArgs<Input>
  : [W] extends [WorkflowClass]
    ? ClassStartArgs<W>
    : never;

export type HandleOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input, infer Output>]
  ? RunHandle<Input, Output>
  : [W] extends [WorkflowClass]
    ? RunHandle<InputOf<W>, OutputOf<W>>
    : never;
