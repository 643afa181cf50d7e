/** Class style: a workflow is a class that declares its steps in a static block. */

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

/** Marks workflow classes. The symbol is global, so classes of another copy of the package are recognised. */
const classBrand: unique symbol = Symbol.for("pawl.workflow-class");

type AnyClass = abstract new () => Workflow<any, any, any>;

export function isWorkflowClass(value: unknown): value is WorkflowClass {
  if (typeof value !== "function" || (value as { [classBrand]?: boolean })[classBrand] !== true) return false;
  // Workflow has the brand as an own property; classes that extend it inherit the brand.
  return !Object.hasOwn(value, classBrand);
}

/**
 * The base class of workflow classes. A class declares a chain of steps in its static block; a run is about a hero, such as
 * a user, which is loaded for each execution of a step. An exception pauses the run unless `onException` says otherwise.
 *
 * @example
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
  /** Marks workflow classes. */
  static readonly [classBrand] = true;
  /** Exists only for the compiler, to carry the type of the output; never set. */
  declare readonly __output?: Output;

  /**
   * Override it to run code before each execution of a step, after the conditions of the step were checked. If it throws,
   * the step does not run.
   */
  beforeStepExecution(_execution: StepExecution): Awaitable<void> {}

  /** Override it to run code after each execution of a step, however it ended. */
  afterStepExecution(_execution: StepExecution): Awaitable<void> {}

  /** Override it to run code around each execution of a step. It must call `next`, which runs the step. */
  aroundStepExecution(_execution: StepExecution, next: () => Promise<void>): Awaitable<void> {
    return next();
  }

  /**
   * Makes a reference from a hero or its id, for the option `hero` of `start` and `runs`. Throws an InvalidInputError if the
   * class has no `heroType` or the hero has no id.
   *
   * @example
   * ```ts
   * await pawl.start(Onboarding, { hero: Onboarding.heroOf(user) }); // { type: "User", id: String(user.id) }
   * ```
   */
  static heroOf<C extends WorkflowClass & { readonly heroType: string }>(
    this: C,
    hero:
      | HeroId
      | (NonNullable<HeroOf<C>> & {
          /** The id of the hero. */
          readonly id: HeroId;
        }),
  ): HeroRef<HeroTypeOf<C>> {
    return heroReference(this, hero) as HeroRef<HeroTypeOf<C>>;
  }

  /**
   * Sets options of the class. Options of parent classes apply where the class sets none.
   *
   * @example
   * ```ts
   * this.options({ queue: "mail", onException: "reattempt", maxReattempts: 5 });
   * ```
   */
  static options<C extends AnyClass>(this: C, options: ClassOptions<InstanceType<C>>): void {
    declarationsOf(this).setOptions(options);
  }

  /** Cancels the run if one of the conditions is true when a step is about to run. Conditions of parent classes apply too. */
  static cancelIf<C extends AnyClass>(this: C, ...conditions: readonly Condition<InstanceType<C>>[]): void {
    declarationsOf(this).cancelIf(conditions);
  }

  /**
   * Lists steps that you removed from the class. An open run that is at such a step skips it; a run at a removed step that is
   * not listed is paused.
   */
  static removedSteps<C extends AnyClass>(this: C, names: readonly string[]): void {
    declarationsOf(this).removeSteps(names);
  }

  // Each method has one overload per number of arguments, so that the compiler's error is about the wrong argument and not
  // about all overloads.

  /**
   * Declares the next step of the chain, as the method of that name or as a function. A function without a name becomes
   * `step_1`, `step_2` … by its position.
   *
   * @example
   * ```ts
   * this.step("send_welcome", (w) => mail.welcome(w.hero));
   * this.step("send_reminder", { wait: "2 days", skipIf: "unsubscribed" }); // the method send_reminder
   * this.step("charge", { onException: "reattempt", maxReattempts: 5 }, (w) => pay(w.hero, w.idempotencyKey));
   * ```
   */
  static step<C extends AnyClass>(
    this: WithHeroLoader<C>,
    methodOrFunction: MethodName<InstanceType<C>> | StepFunction<C>,
  ): void;
  /** Declares the next step of the chain: a name with a function, a name with options, or options with a function. */
  static step<
    C extends AnyClass,
    const First extends string | StepDeclarationOptions<InstanceType<C>>,
    const Job extends JobDefinition | string,
  >(this: WithHeroLoader<C>, nameOrOptions: First, optionsOrFunction: StepArgument<C, First, Job>): void;
  /** Declares the next step of the chain with a name, options and a function. */
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
   * Declares a task, which is not part of the chain: the method of that name. The task starts when the steps and tasks in
   * `dependsOn` have ended, or at once without `dependsOn`, and may run at the same time as other steps and tasks.
   *
   * @example
   * ```ts
   * this.task("check_fraud", { dependsOn: "validate" }, (w) => fraud.check(w.hero));
   * this.step("ship", { alsoDependsOn: "check_fraud" }, (w) => ship(w.hero));
   * ```
   */
  static task<C extends AnyClass>(this: WithHeroLoader<C>, method: MethodName<InstanceType<C>>): void;
  /** Declares a task: a name with a function, or a name with options for a method or a job. */
  static task<C extends AnyClass, const First extends string, const Job extends JobDefinition | string>(
    this: WithHeroLoader<C>,
    name: First,
    optionsOrFunction: StepArgument<C, First, Job>,
  ): void;
  /** Declares a task with a name, options and a function. */
  static task<C extends AnyClass>(
    this: WithHeroLoader<C>,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>>,
    fn: StepFunction<C>,
  ): void;
  static task(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("task", parts);
  }

  /**
   * Declares a step that iterates over many items and stores a cursor after each item. After a crash, a deploy or an
   * interruption it continues from the cursor.
   *
   * @example
   * ```ts
   * this.resumableStep("notify_all", { maxRuntime: "5 minutes" }, async (w, iter) => {
   *   await iter.over(w.input.ids, (id) => notify(id));
   * });
   * ```
   */
  static resumableStep<C extends AnyClass>(
    this: WithHeroLoader<C>,
    methodOrFunction: MethodName<InstanceType<C>> | ResumableFunction<C>,
  ): void;
  /** Declares a resumable step: a name with a function, a name with options, or options with a function. */
  static resumableStep<C extends AnyClass, const First extends string | ResumableStepOptions<InstanceType<C>>>(
    this: WithHeroLoader<C>,
    nameOrOptions: First,
    optionsOrFunction: ResumableStepArgument<C, First>,
  ): void;
  /** Declares a resumable step with a name, options and a function. */
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

/** The type of `this` for methods that declare steps: a class that is not abstract must have `loadHero` for its hero. */
type WithHeroLoader<C extends AnyClass> = C & (C extends WorkflowClass ? LoadsHeroOf<C> : unknown);

/** The `loadHero` that a class must have. It may be left out only if the type of the hero is the reference itself. */
export type LoadsHeroOf<C extends WorkflowClass> = [HeroRef] extends [HeroOf<C>]
  ? {
      /** Loads the hero by its id; null or undefined: the hero no longer exists. */
      readonly loadHero?: (id: string) => Awaitable<HeroOf<C> | null | undefined>;
    }
  : [HeroOf<C>] extends [null | undefined | void]
    ? unknown
    : {
        /** Loads the hero by its id; null or undefined: the hero no longer exists. */
        readonly loadHero: (id: string) => Awaitable<HeroOf<C> | null | undefined>;
      };

/**
 * The second argument of `step(name, …)`. Options may replace the function only if a method has that name, or if the options
 * name a job.
 */
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

/** No value has this type; it makes the compiler's error about an unknown method list the methods that exist. */
interface OptionsOfMethod<Methods> {
  readonly [methods]: Methods;
}
declare const methods: unique symbol;
