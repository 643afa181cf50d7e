/** The types of the arguments and the result of `start`, and the function that tells input and options apart. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { HeroOf, HeroTypeOf, InputOf, MayLackHero, OutputOf } from "../../define/class/class-types.js";
import type { LoadsHeroOf } from "../../define/class/workflow.js";
import type { WorkflowClass } from "../../define/class/workflow-instance.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { HeroRef } from "../../define/hero.js";
import type { AnyWorkflow } from "../../define/resolve.js";
import type { RunHandle } from "../run-handle.js";
import type { DebounceOptions } from "./debounce.js";
import type { StartOptions } from "./new-run.js";

/** The arguments of `start` after the workflow. The input may be left out if its type is void. */
export type StartArgs<Input> = [Input] extends [void]
  ? [input?: Input, options?: StartOptions]
  : unknown extends Input
    ? [input: Input, options?: StartOptions | CollectingStartOptions]
    : [Input] extends [readonly (infer Element)[]]
      ? [input: Input, options?: StartOptions] | [input: Element, options: CollectingStartOptions<Element>]
      : [input: Input, options?: StartOptions];

/** The options of a debounced start whose run gets a list of the inputs of all starts. */
export type CollectingStartOptions<Input = any> = Omit<StartOptions, "debounce"> & {
  /** Merges this start with others of the same key, and gives the run a list of their inputs. */
  readonly debounce: DebounceOptions<Input, "all"> & {
    /** The run gets a list of the inputs of all starts. */
    readonly keep: "all";
  };
};

/** The options of `start` for a class: like `StartOptions`, with the hero that the class declares. */
type ClassStartOptions<C extends WorkflowClass> = Omit<StartOptions, "hero"> &
  (MayLackHero<HeroOf<C>> extends true
    ? {
        /** The hero of the run. */
        readonly hero?: HeroRef<HeroTypeOf<C>>;
      }
    : {
        /** The hero of the run, which this class needs. */
        readonly hero: HeroRef<HeroTypeOf<C>>;
      });

/**
 * A class with a hero needs the option `hero`, and a class with an input needs the input. A class that loads its hero and
 * takes no input may be started with the options alone, because it has no input that the options could be mistaken for.
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

/**
 * Whether the class loads its hero. A class whose hero is only a reference may do without `loadHero`; for any other hero,
 * `Startable` requires that the class has it.
 */
type LoadsHero<C extends WorkflowClass> = [HeroRef] extends [HeroOf<C>] ? HasLoader<C> : true;
type HasLoader<C> = C extends { readonly loadHero: unknown } ? true : false;

// `start` has one signature for definitions and classes instead of overloads. The compiler reports only why the last
// overload does not match, so a caller who forgot the input of a function would read that the function is not a class.

/** The requirement of `start` on the workflow: a class must have `loadHero` if its hero has to be loaded. */
export type Startable<W extends AnyWorkflow> = [W] extends [WorkflowClass] ? LoadsHeroOf<W> : unknown;

/** The arguments of `start` after this workflow. */
export type StartArgsOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input>]
  ? StartArgs<Input>
  : [W] extends [WorkflowClass]
    ? ClassStartArgs<W>
    : never;

/** The requirement of `startMany`, which takes no hero: the class must not need one. */
export type StartableWithoutHero<W extends AnyWorkflow> = [W] extends [WorkflowClass]
  ? MayLackHero<HeroOf<W>> extends true
    ? LoadsHeroOf<W>
    : NeedsAHeroOfItsOwn
  : unknown;

/** No value has this type; it makes the compiler's error say why the class cannot be given to `startMany`. */
interface NeedsAHeroOfItsOwn {
  readonly [needed]: "start each run with { hero }";
}
declare const needed: unique symbol;

/** The type of the input of a workflow. */
export type InputTo<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input>]
  ? Input
  : [W] extends [WorkflowClass]
    ? InputOf<W>
    : never;

/** The type of the handle of a workflow's runs. */
export type HandleOf<W extends AnyWorkflow> = [W] extends [WorkflowDefinition<infer Input, infer Output>]
  ? RunHandle<Input, Output>
  : [W] extends [WorkflowClass]
    ? RunHandle<InputOf<W>, OutputOf<W>>
    : never;

/**
 * Tells the input and the options apart. A class whose runs need a hero and take no input may be started with the options
 * alone, `start(Onboarding, { hero })`: the argument cannot be an input, because the call would then lack the required hero.
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
    `The hero in start("${name}", { hero }) may be an option or part of the input, because this workflow does not need a hero; write start("${name}", undefined, { hero }), or start("${name}", input, {}).`,
  );
}

const hasHero = (value: unknown): value is Pick<StartOptions, "hero"> =>
  typeof value === "object" && value !== null && Object.hasOwn(value, "hero");
