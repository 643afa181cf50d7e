/** The steps and options that one class declares. Each class has its own object, so a subclass never changes its parent. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkName } from "../../core/naming/names.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import {
  type AnyStepOptions,
  type ClassOptions,
  checkClassOptions,
  checkCondition,
  checkResumableOptions,
  checkStepOptions,
} from "./options.js";

export type AnyCondition = boolean | string | ((w: any) => unknown);

export interface StepDeclaration {
  /** The name of the step; null if it gets its name from its position in the chain. */
  readonly name: string | null;
  readonly kind: "plain" | "resumable" | "task";
  readonly options: AnyStepOptions;
  /** The function of the step; null if the step runs the method of its name, or the job in its options. */
  readonly fn: ((w: any, iter?: any) => unknown) | null;
}

export class Declarations {
  readonly #workflowName: string;
  readonly steps: StepDeclaration[] = [];
  readonly cancelConditions: AnyCondition[] = [];
  readonly removedSteps: string[] = [];
  options: ClassOptions<any> = {};
  /** Set when the class is first used; after that its declarations cannot change. */
  isSealed = false;

  constructor(workflowName: string) {
    this.#workflowName = workflowName;
  }

  setOptions(options: ClassOptions<any>): void {
    this.#checkNotSealed("options");
    checkClassOptions(options, `workflow ${this.#workflowName}`);
    this.options = { ...this.options, ...options };
  }

  cancelIf(conditions: readonly AnyCondition[]): void {
    this.#checkNotSealed("cancelIf");
    for (const condition of conditions) checkCondition(condition, `cancelIf of workflow ${this.#workflowName}`);
    this.cancelConditions.push(...conditions);
  }

  removeSteps(names: readonly string[]): void {
    this.#checkNotSealed("removedSteps");
    if (!Array.isArray(names))
      throw new InvalidInputError(`removedSteps of workflow ${this.#workflowName} takes a list of names.`);
    this.removedSteps.push(...names.map((name) => checkName("step", name)));
  }

  /** @param parts an optional name, optional options and an optional function, in this order */
  addStep(kind: StepDeclaration["kind"], parts: readonly unknown[]): void {
    const methodName = { plain: "step", resumable: "resumableStep", task: "task" }[kind];
    this.#checkNotSealed(methodName);
    const remainingParts = [...parts];
    const explicitName = typeof remainingParts[0] === "string" ? checkStepName(remainingParts.shift()) : null;
    const options = typeof remainingParts[0] === "object" ? remainingParts.shift() : {};
    const fn = remainingParts.shift();
    const noun = kind === "task" ? "task" : "step";
    const subject =
      explicitName === null
        ? `a ${noun} of workflow ${this.#workflowName}`
        : `${noun} "${explicitName}" of workflow ${this.#workflowName}`;
    const isNamed = explicitName !== null || (kind !== "task" && fn !== undefined) || hasName(fn);
    if (remainingParts.length > 0 || (fn !== undefined && typeof fn !== "function") || !isNamed) {
      const nameSyntax = kind === "task" ? "name" : "name?";
      throw new InvalidInputError(
        `Write ${subject} as ${methodName}(${nameSyntax}, options?, function), or ${methodName}(method, options?).`,
      );
    }
    (kind === "resumable" ? checkResumableOptions : checkStepOptions)(options, subject);
    checkOptionsOfKind(kind, options as AnyStepOptions, fn, subject);
    // In `step(async function send_receipt(w) { … })` the step is named after the function.
    const name = explicitName ?? (hasName(fn) ? checkStepName(fn.name) : null);
    this.steps.push({
      kind,
      name,
      options: { ...(options as AnyStepOptions) },
      fn: (fn ?? null) as StepDeclaration["fn"],
    });
  }

  #checkNotSealed(what: string): void {
    if (!this.isSealed) return;
    throw new InvalidInputError(
      `Workflow ${this.#workflowName} is already in use; call ${what} in its static block, before it is started or given to a worker.`,
    );
  }
}

/** Refuses options that this kind of step does not have. */
function checkOptionsOfKind(
  kind: StepDeclaration["kind"],
  { beforeStep, afterStep, job, args }: AnyStepOptions,
  fn: unknown,
  subject: string,
): void {
  if (kind === "task" && (beforeStep !== undefined || afterStep !== undefined))
    throw new InvalidInputError(
      `${capitalize(subject)} has beforeStep or afterStep, which are for steps; use dependsOn for a task.`,
    );
  if (job !== undefined && fn !== undefined)
    throw new InvalidInputError(`${capitalize(subject)} has a job and a function; remove one of them.`);
  if (job !== undefined && kind === "resumable")
    throw new InvalidInputError(`${capitalize(subject)} has a job, which has no cursor; declare it with step or task.`);
  if (args !== undefined && job === undefined)
    throw new InvalidInputError(`${capitalize(subject)} has args but no job; add the job.`);
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const hasName = (fn: unknown): fn is (...args: any[]) => unknown => typeof fn === "function" && fn.name !== "";

/** Refuses a name that contains "/", because calls inside a step are recorded as `step/call`. */
function checkStepName(name: unknown): string {
  const checkedName = checkName("step", name);
  if (!checkedName.includes(scopeSeparator)) return checkedName;
  throw new InvalidInputError(`The step name "${checkedName}" contains "${scopeSeparator}"; choose another.`);
}

const declarations = new WeakMap<object, Declarations>();

export function declarationsOf(workflowClass: { readonly name: string }): Declarations {
  let ownDeclarations = declarations.get(workflowClass);
  if (ownDeclarations === undefined)
    declarations.set(
      workflowClass,
      (ownDeclarations = new Declarations(workflowClass.name === "" ? "(unnamed class)" : workflowClass.name)),
    );
  return ownDeclarations;
}
