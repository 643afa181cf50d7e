/** Class style: a workflow about a hero, as a class that declares the chain of its steps. */

import type { Awaitable } from "../awaitable.js";
import type { JobDefinition } from "../dynamic/job.js";
import type { HeroRef } from "../hero.js";
import { type HeroId, heroReference } from "../hero.js";
import type { StepExecution } from "../step-hooks.js";
import type { Condition, HeroOf, HeroTypeOf, MethodName } from "./class-types.js";
import { WithContext } from "./context-members.js";
import { declarationsOf } from "./declarations.js";
import type { StepIterator } from "./iterator.js";
import type { ClassOptions, JobStepOptions, ResumableStepOptions, StepDeclarationOptions } from "./options.js";
import type { WorkflowClass, WorkflowInstance } from "./workflow-instance.js";

/** Brands workflow classes, so that they are recognised whichever copy of Pawl made them. */
const classBrand: unique symbol = Symbol.for("pawl.workflow-class");

type AnyClass = abstract new () => Workflow<any, any, any>;

export function isWorkflowClass(value: unknown): value is WorkflowClass {
  if (typeof value !== "function" || (value as { [classBrand]?: boolean })[classBrand] !== true) return false;
  // Workflow itself has it for its own; it is not one.
  return !Object.hasOwn(value, classBrand);
}

/**
 * A workflow about a hero.
 *
 * ```ts
 * class Onboarding extends Workflow<User> {
 *   static heroType = "User";
 *   static loadHero = (id: string) => users.find(id);
 *   static {
 *     this.cancelIf((w) => w.hero.deactivated);
 *     this.step("send_welcome", (w) => mail.welcome(w.hero));
 *     this.step("send_reminder", { wait: "2 days" });
 *   }
 *   async send_reminder() {
 *     await mail.reminder(this.hero);
 *   }
 * }
 * ```
 */
export abstract class Workflow<Hero = unknown, Input = void, Output = void>
  extends WithContext<Hero, Input, Output>
  implements WorkflowInstance<Hero, Input, Output>
{
  static readonly [classBrand] = true;
  /** Carries the type only. */
  declare readonly __output?: Output;

  /** Called before each execution of a step, once its conditions let it run. */
  beforeStepExecution(_execution: StepExecution): Awaitable<void> {}

  /** Called after each, however it ended. */
  afterStepExecution(_execution: StepExecution): Awaitable<void> {}

  /** Called around each; `next` runs the step. */
  aroundStepExecution(_execution: StepExecution, next: () => Promise<void>): Awaitable<void> {
    return next();
  }

  /**
   * The reference to a hero that `start` and `runs` take, made of the hero or its id: `Onboarding.heroOf(user)` is
   * `{ type: "User", id: String(user.id) }`.
   */
  static heroOf<C extends WorkflowClass & { readonly heroType: string }>(
    this: C,
    hero: HeroId | (NonNullable<HeroOf<C>> & { readonly id: HeroId }),
  ): HeroRef<HeroTypeOf<C>> {
    return heroReference(this, hero) as HeroRef<HeroTypeOf<C>>;
  }

  /** Options for the whole class. Those of its parents hold where it says nothing. */
  static options<C extends AnyClass>(this: C, options: ClassOptions<InstanceType<C>>): void {
    declarationsOf(this).setOptions(options);
  }

  /** The run is canceled when one of these is true as a step is about to run. Those of its parents count too. */
  static cancelIf<C extends AnyClass>(this: C, ...conditions: readonly Condition<InstanceType<C>>[]): void {
    declarationsOf(this).cancelIf(conditions);
  }

  /** Steps that are not in the code any more and that open runs may pass over. */
  static removedSteps<C extends AnyClass>(this: C, names: readonly string[]): void {
    declarationsOf(this).removeSteps(names);
  }

  // One overload for each number of arguments: then the compiler says what is wrong with an argument, and not that no
  // overload fits.

  /** The next step of the chain. Without a function it is the method of that name; without a name it is `step_1`, `step_2`… */
  static step<C extends AnyClass>(
    this: WithHeroLoader<C>,
    methodOrFunction: MethodName<InstanceType<C>> | StepFunction<C>,
  ): void;
  static step<
    C extends AnyClass,
    const First extends string | StepDeclarationOptions<InstanceType<C>>,
    const Job extends JobDefinition | string,
  >(this: WithHeroLoader<C>, nameOrOptions: First, optionsOrFunction: StepArgument<C, First, Job>): void;
  static step<C extends AnyClass>(
    this: WithHeroLoader<C>,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>>,
    fn: StepFunction<C>,
  ): void;
  static step(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("plain", parts);
  }

  /**
   * A node beside the chain: it runs as soon as all that it depends on is done, at the same time as whatever else can.
   * Without a function it is the method of that name, or the job that the options name.
   */
  static task<C extends AnyClass>(this: WithHeroLoader<C>, method: MethodName<InstanceType<C>>): void;
  static task<C extends AnyClass, const First extends string, const Job extends JobDefinition | string>(
    this: WithHeroLoader<C>,
    name: First,
    optionsOrFunction: StepArgument<C, First, Job>,
  ): void;
  static task<C extends AnyClass>(
    this: WithHeroLoader<C>,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>>,
    fn: StepFunction<C>,
  ): void;
  static task(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("task", parts);
  }

  /** A step that goes through many items and remembers how far it got. */
  static resumableStep<C extends AnyClass>(
    this: WithHeroLoader<C>,
    methodOrFunction: MethodName<InstanceType<C>> | ResumableFunction<C>,
  ): void;
  static resumableStep<C extends AnyClass, const First extends string | ResumableStepOptions<InstanceType<C>>>(
    this: WithHeroLoader<C>,
    nameOrOptions: First,
    optionsOrFunction: ResumableStepArgument<C, First>,
  ): void;
  static resumableStep<C extends AnyClass>(
    this: WithHeroLoader<C>,
    name: string,
    options: ResumableStepOptions<InstanceType<C>>,
    fn: ResumableFunction<C>,
  ): void;
  static resumableStep(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("resumable", parts);
  }
}

type StepFunction<C extends AnyClass> = (this: InstanceType<C>, w: InstanceType<C>) => unknown;
type ResumableFunction<C extends AnyClass> = (this: InstanceType<C>, w: InstanceType<C>, iter: StepIterator) => unknown;

/** A class whose steps are declared: unless others are to extend it, it knows how its hero is loaded. */
type WithHeroLoader<C extends AnyClass> = C & (C extends WorkflowClass ? LoadsHeroOf<C> : unknown);

/**
 * What a class about a hero has to have: the hero's loader. Only a hero that is no more than its reference needs none.
 */
export type LoadsHeroOf<C extends WorkflowClass> = [HeroRef] extends [HeroOf<C>]
  ? { readonly loadHero?: (id: string) => Awaitable<HeroOf<C> | null | undefined> }
  : [HeroOf<C>] extends [null | undefined | void]
    ? unknown
    : { readonly loadHero: (id: string) => Awaitable<HeroOf<C> | null | undefined> };

/** What may follow the name: options alone only if it is that of a method, or if they name a job. */
type StepArgument<C extends AnyClass, Name, Job extends JobDefinition | string> =
  Name extends MethodName<InstanceType<C>>
    ? StepFunction<C> | StepDeclarationOptions<InstanceType<C>> | JobStepOptions<InstanceType<C>, Job>
    : Name extends string
      ? StepFunction<C> | JobStepOptions<InstanceType<C>, Job> | OptionsOfMethod<MethodName<InstanceType<C>>>
      : StepFunction<C>;

type ResumableStepArgument<C extends AnyClass, Name> =
  Name extends MethodName<InstanceType<C>>
    ? ResumableFunction<C> | ResumableStepOptions<InstanceType<C>>
    : Name extends string
      ? ResumableFunction<C> | OptionsOfMethod<MethodName<InstanceType<C>>>
      : ResumableFunction<C>;

/** Never given: it tells the compiler's readers, behind a name that no method has, which names would have been right. */
interface OptionsOfMethod<Methods> {
  readonly [methods]: Methods;
}
declare const methods: unique symbol;
