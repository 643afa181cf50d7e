/** What `start` takes beside the workflow, and what it gives. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { HeroOf, HeroTypeOf, InputOf, MayLackHero, OutputOf } from "../../define/class/class-types.js";
import type { LoadsHeroOf } from "../../define/class/workflow.js";
import type { WorkflowClass } from "../../define/class/workflow-instance.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { HeroRef } from "../../define/hero.js";
import type { AnyWorkflow } from "../../define/resolve.js";
import type { RunHandle } from "../run-handle.js";
import type { StartOptions } from "./new-run.js";

/** The input may be left out when its type is void. */
export type StartArgs<Input> = [Input] extends [void]
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

type ClassStartOptions<C extends WorkflowClass> = Omit<StartOptions, "hero"> &
  (MayLackHero<HeroOf<C>> extends true
    ? { readonly hero?: HeroRef<HeroTypeOf<C>> }
    : { readonly hero: HeroRef<HeroTypeOf<C>> });

/**
 * A run about a hero needs the hero; an input is needed when there is one. If there is none, the options may take its
 * place, where the class loads its hero: only then can they not be mistaken for an input.
 */
type ClassStartArgs<C extends WorkflowClass> =
  MayLackHero<HeroOf<C>> extends true
    ? [InputOf<C>] extends [void]
      ? [input?: InputOf<C>, options?: ClassStartOptions<C>]
      : [input: InputOf<C>, options?: ClassStartOptions<C>]
    : [InputOf<C>] extends [void]
      ? [LoadsHero<C>] extends [true]
        ? [options: ClassStartOptions<C> | undefined, options?: ClassStartOptions<C>]
        : [input: undefined, options: ClassStartOptions<C>]
      : [input: InputOf<C>, options: ClassStartOptions<C>];

/** A hero that is more than its reference has to be loaded. If it is not, `Startable` says so. */
type LoadsHero<C extends WorkflowClass> = [HeroRef] extends [HeroOf<C>] ? HasLoader<C> : true;
type HasLoader<C> = C extends { readonly loadHero: unknown } ? true : false;

// One signature for definitions and classes: of several overloads, a compiler complains about the last one only, and
// a caller who forgot the input of a function was told that it is not a class.

/** What a workflow must be besides: a class loads the hero that it says it has. */
export type Startable<W extends AnyWorkflow> = [W] extends [WorkflowClass] ? LoadsHeroOf<W> : unknown;

export type StartArgsOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input>]
  ? StartArgs<Input>
  : [W] extends [WorkflowClass]
    ? ClassStartArgs<W>
    : never;

/** Many runs at a time are about no hero: one that needs a hero is started by itself. */
export type StartableWithoutHero<W extends AnyWorkflow> = [W] extends [WorkflowClass]
  ? MayLackHero<HeroOf<W>> extends true
    ? LoadsHeroOf<W>
    : NeedsAHeroOfItsOwn
  : unknown;

/** Never given: it tells the compiler's readers why this class cannot be started that way. */
interface NeedsAHeroOfItsOwn {
  readonly [needed]: "start each run with { hero }";
}
declare const needed: unique symbol;

export type InputTo<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input>]
  ? Input
  : [W] extends [WorkflowClass]
    ? InputOf<W>
    : never;

export type HandleOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input, infer Output>]
  ? RunHandle<Input, Output>
  : [W] extends [WorkflowClass]
    ? RunHandle<InputOf<W>, OutputOf<W>>
    : never;

/**
 * A class whose runs need a hero and take no input may be started with the options alone, `start(Onboarding, { hero })`.
 * Such a call would be refused if its argument were an input, since then there is no hero: nothing is ambiguous.
 */
export function inputAndOptions(
  { name, hero }: Pick<WorkflowDefinition, "name" | "hero">,
  args: readonly unknown[],
): readonly [input: unknown, options: StartOptions | undefined] {
  const [first, options] = args as [unknown, StartOptions | undefined];
  if (args.length !== 1 || !hasHero(first)) return [first, options];
  if (hero.required) return [undefined, first];
  if (hero.type === null || first.hero?.type !== hero.type) return [first, options];
  throw new InvalidInputError(
    `It is not clear whether the hero in start("${name}", { hero }) is an option or an input, as this workflow may go on without one; write start("${name}", undefined, { hero }), or start("${name}", input, {}).`,
  );
}

const hasHero = (value: unknown): value is Pick<StartOptions, "hero"> =>
  typeof value === "object" && value !== null && Object.hasOwn(value, "hero");
