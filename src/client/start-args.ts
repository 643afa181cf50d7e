/** What `start` takes beside the workflow. */
import type { HeroOf, HeroTypeOf, InputOf, MayLackHero } from "../define/class/class-types.js";
import type { WorkflowClass } from "../define/class/workflow.js";
import type { HeroRef } from "../define/stepping.js";
import type { StartOptions } from "./birth.js";

/** The input may be left out when its type is void. */
export type StartArgs<Input> = [Input] extends [void]
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

type ClassStartOptions<C extends WorkflowClass> = Omit<StartOptions, "hero"> &
  (MayLackHero<HeroOf<C>> extends true
    ? { readonly hero?: HeroRef<HeroTypeOf<C>> }
    : { readonly hero: HeroRef<HeroTypeOf<C>> });

/** A run about a hero needs the hero; an input is needed when there is one. */
export type ClassStartArgs<C extends WorkflowClass> =
  MayLackHero<HeroOf<C>> extends true
    ? [InputOf<C>] extends [void]
      ? [input?: InputOf<C>, options?: ClassStartOptions<C>]
      : [input: InputOf<C>, options?: ClassStartOptions<C>]
    : [input: [InputOf<C>] extends [void] ? InputOf<C> | undefined : InputOf<C>, options: ClassStartOptions<C>];
