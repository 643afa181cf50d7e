/** What one class says about itself. Each class has its own, so that a subclass never touches its parent. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkName } from "../../core/naming/names.js";
import { scopeMark } from "../../core/run/step-key.js";
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
  /** null: it has none of its own and is named by its place. */
  readonly name: string | null;
  readonly kind: "plain" | "resumable" | "task";
  readonly options: AnyStepOptions;
  /** null: the method of that name. */
  readonly fn: ((w: any, iter?: any) => unknown) | null;
}

export class Declarations {
  readonly #of: string;
  readonly steps: StepDeclaration[] = [];
  readonly conditions: AnyCondition[] = [];
  readonly removed: string[] = [];
  options: ClassOptions<any> = {};
  /** Once a class is in use, what it says is settled. */
  sealed = false;

  constructor(of: string) {
    this.#of = of;
  }

  setOptions(options: ClassOptions<any>): void {
    this.#checkOpen("options");
    checkClassOptions(options, `workflow ${this.#of}`);
    this.options = { ...this.options, ...options };
  }

  cancelIf(conditions: readonly AnyCondition[]): void {
    this.#checkOpen("cancelIf");
    for (const condition of conditions) checkCondition(condition, `cancelIf of workflow ${this.#of}`);
    this.conditions.push(...conditions);
  }

  removeSteps(names: readonly string[]): void {
    this.#checkOpen("removedSteps");
    if (!Array.isArray(names))
      throw new InvalidInputError(`removedSteps of workflow ${this.#of} takes a list of names.`);
    this.removed.push(...names.map((name) => checkName("step", name)));
  }

  /** Its parts are an optional name, optional options and an optional function, in this order. */
  addStep(kind: StepDeclaration["kind"], parts: readonly unknown[]): void {
    const word = { plain: "step", resumable: "resumableStep", task: "task" }[kind];
    this.#checkOpen(word);
    const rest = [...parts];
    const given = typeof rest[0] === "string" ? checkStepName(rest.shift()) : null;
    const options = typeof rest[0] === "object" ? rest.shift() : {};
    const fn = rest.shift();
    const thing = kind === "task" ? "task" : "step";
    const what = given === null ? `a ${thing} of workflow ${this.#of}` : `${thing} "${given}" of workflow ${this.#of}`;
    const isNamed = given !== null || (kind !== "task" && fn !== undefined) || hasName(fn);
    if (rest.length > 0 || (fn !== undefined && typeof fn !== "function") || !isNamed) {
      const called = kind === "task" ? "name" : "name?";
      throw new InvalidInputError(
        `Write ${what} as ${word}(${called}, options?, function), or ${word}(method, options?).`,
      );
    }
    (kind === "resumable" ? checkResumableOptions : checkStepOptions)(options, what);
    checkFit(kind, options as AnyStepOptions, fn, what);
    // `step(async function send_receipt(w) { … })`: a function that has a name gives it to its step.
    const name = given ?? (hasName(fn) ? checkStepName(fn.name) : null);
    this.steps.push({
      kind,
      name,
      options: { ...(options as AnyStepOptions) },
      fn: (fn ?? null) as StepDeclaration["fn"],
    });
  }

  #checkOpen(what: string): void {
    if (!this.sealed) return;
    throw new InvalidInputError(
      `Workflow ${this.#of} is in use already; call ${what} in its static block, before it is started or given to a worker.`,
    );
  }
}

/** Options that exist, but not for this. */
function checkFit(
  kind: StepDeclaration["kind"],
  { beforeStep, afterStep, job, args }: AnyStepOptions,
  fn: unknown,
  what: string,
): void {
  if (kind === "task" && (beforeStep !== undefined || afterStep !== undefined))
    throw new InvalidInputError(
      `${upper(what)} has a place in the chain, which is for steps; say what it comes after with dependsOn.`,
    );
  if (job !== undefined && fn !== undefined)
    throw new InvalidInputError(`${upper(what)} has a job and a function; it takes one of them.`);
  if (job !== undefined && kind === "resumable")
    throw new InvalidInputError(`${upper(what)} has a job, which has no cursor; write it as a step or a task.`);
  if (args !== undefined && job === undefined)
    throw new InvalidInputError(`${upper(what)} has args, which are for a job, and names none; add the job.`);
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const hasName = (fn: unknown): fn is (...args: any[]) => unknown => typeof fn === "function" && fn.name !== "";

/** The parts of a step are recorded under its name and a slash. */
function checkStepName(name: unknown): string {
  const checked = checkName("step", name);
  if (!checked.includes(scopeMark)) return checked;
  throw new InvalidInputError(`The step name "${checked}" contains "${scopeMark}"; choose another.`);
}

const declarations = new WeakMap<object, Declarations>();

export function declarationsOf(of: { readonly name: string }): Declarations {
  let own = declarations.get(of);
  if (own === undefined) declarations.set(of, (own = new Declarations(of.name === "" ? "(unnamed class)" : of.name)));
  return own;
}
