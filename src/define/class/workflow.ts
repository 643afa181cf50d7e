/** Class style: a workflow about a hero, as a class that declares the chain of its steps. */

import type { JobDefinition } from "../dynamic/job.js";
import type { Awaitable, Condition, HeroOf, MethodName, StepExecution } from "./class-types.js";
import { WithContext } from "./context-members.js";
import { declarationsOf } from "./declarations.js";
import type { StepIterator } from "./iterator.js";
import type { ClassOptions, ResumableStepOptions, StepDeclarationOptions } from "./options.js";

/** Brands workflow classes, so that they are recognised whichever copy of Pawl made them. */
const classBrand: unique symbol = Symbol.for("pawl.workflow-class");

export type WorkflowClass<W extends Workflow<any, any, any> = Workflow<any, any, any>> = new () => W;
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
export abstract class Workflow<Hero = unknown, Input = void, Output = void> extends WithContext<Hero, Input, Output> {
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

  /** The next step of the chain. Without a function it is the method of that name; without a name it is `step_1`, `step_2`… */
  static step<C extends AnyClass>(this: C, name: string, fn: StepFunction<C>): void;
  static step<C extends AnyClass>(
    this: C,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>>,
    fn: StepFunction<C>,
  ): void;
  static step<C extends AnyClass>(
    this: C,
    method: MethodName<InstanceType<C>>,
    options?: StepDeclarationOptions<InstanceType<C>>,
  ): void;
  static step<C extends AnyClass>(
    this: C,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>> & { readonly job: JobDefinition | string },
  ): void;
  static step<C extends AnyClass>(this: C, options: StepDeclarationOptions<InstanceType<C>>, fn: StepFunction<C>): void;
  static step<C extends AnyClass>(this: C, fn: StepFunction<C>): void;
  static step(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("plain", parts);
  }

  /**
   * A node beside the chain: it runs as soon as all that it depends on is done, at the same time as whatever else can.
   * Without a function it is the method of that name, or the job that the options name.
   */
  static task<C extends AnyClass>(this: C, name: string, fn: StepFunction<C>): void;
  static task<C extends AnyClass>(
    this: C,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>>,
    fn: StepFunction<C>,
  ): void;
  static task<C extends AnyClass>(
    this: C,
    name: string,
    options: StepDeclarationOptions<InstanceType<C>> & { readonly job: JobDefinition | string },
  ): void;
  static task<C extends AnyClass>(
    this: C,
    method: MethodName<InstanceType<C>>,
    options?: StepDeclarationOptions<InstanceType<C>>,
  ): void;
  static task(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("task", parts);
  }

  /** A step that goes through many items and remembers how far it got. */
  static resumableStep<C extends AnyClass>(this: C, name: string, fn: ResumableFunction<C>): void;
  static resumableStep<C extends AnyClass>(
    this: C,
    name: string,
    options: ResumableStepOptions<InstanceType<C>>,
    fn: ResumableFunction<C>,
  ): void;
  static resumableStep<C extends AnyClass>(
    this: C,
    method: MethodName<InstanceType<C>>,
    options?: ResumableStepOptions<InstanceType<C>>,
  ): void;
  static resumableStep<C extends AnyClass>(
    this: C,
    options: ResumableStepOptions<InstanceType<C>>,
    fn: ResumableFunction<C>,
  ): void;
  static resumableStep<C extends AnyClass>(this: C, fn: ResumableFunction<C>): void;
  static resumableStep(this: AnyClass, ...parts: unknown[]): void {
    declarationsOf(this).addStep("resumable", parts);
  }
}

type StepFunction<C extends AnyClass> = (w: InstanceType<C>) => unknown;
type ResumableFunction<C extends AnyClass> = (w: InstanceType<C>, iter: StepIterator) => unknown;

/** What `start` wants to know of the class: that its loader loads its hero. */
export interface LoadsHeroOf<C extends WorkflowClass> {
  readonly loadHero?: (id: string) => Awaitable<HeroOf<C> | null | undefined>;
}
