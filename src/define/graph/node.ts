/** The nodes of a graph: steps and branches. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import { type RetryOptions, type RetryPolicy, resolveRetry } from "../../core/naming/retry-policy.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import type { WorkflowContext } from "../context.js";
import { checkStepLimit, type LimitDefinition } from "../limit.js";

/** The `ctx` of a step of a graph: the members of a workflow's `ctx`, and the outputs of preceding steps. */
export interface StepContext<Input = unknown> extends WorkflowContext<Input> {
  /** A key for requests to other services, such as a payment provider. It is the same for all attempts at this step of this run. */
  readonly idempotencyKey: string;
  /**
   * Returns the output of a preceding step. Throws a GraphError if that step does not precede this step or was skipped.
   *
   * @example
   * ```ts
   * const charge = step("charge", (ctx) => pay(ctx.output(validate).total)).after(validate);
   * ```
   */
  output<Output>(step: StepHandle<string, any, Output, any>): Output;
  /**
   * Returns the output of a preceding step, or undefined if that step was skipped. Throws a GraphError if it does not precede
   * this step.
   */
  maybeOutput<Output>(step: StepHandle<string, any, Output, any>): Output | undefined;
}

/** Options of `step(name, fn, options)` of a graph. */
export interface GraphStepOptions<Output = any> {
  /** How often and how soon the step is tried again after it throws. Default: the graph's `retry`. */
  readonly retry?: RetryOptions;
  /** The time limit of each attempt. Default: none. */
  readonly timeout?: Duration;
  /**
   * What happens when the worker dies during the step. `"rerun"` (default) runs the step again. `"pause"` runs it at most
   * once and pauses the run until an operator calls `resume()`, `skip()` or `resume({ output })`.
   */
  readonly onCrash?: "rerun" | "pause";
  /** How many runs may execute the step at the same time in one process; the others wait. Default: no limit. */
  readonly concurrency?: number;
  /** The limit in which each attempt needs a slot, in all processes together, made by `limit(…)`. */
  readonly limit?: LimitDefinition;
  /** How much of the rate of the limit an attempt takes. Default: 1. */
  readonly units?: number;
  /**
   * Undoes the step when the run fails or is canceled later. Compensations run in reverse order of completion, are
   * retried like steps and run at least once.
   */
  compensate?(ctx: StepContext<any>, output: Output): unknown;
}

const stepOptions = new Set<string>([
  "retry",
  "timeout",
  "onCrash",
  "concurrency",
  "limit",
  "units",
  "compensate",
] satisfies (keyof GraphStepOptions)[]);

/** A step or a branch of a graph. */
export type AnyNode = StepHandle<string, any, any, any> | BranchHandle<string, any, any>;

/** A step of a graph, as `step(…)` returns it. `After` are the names of its predecessors. */
export class StepHandle<Name extends string, Input, Output, After extends string = never> {
  /** Distinguishes steps from branches. */
  readonly kind = "step";
  /** The name of the step. */
  readonly name: Name;
  /** The function of the step. */
  readonly fn: (ctx: StepContext<Input>) => Output | Promise<Output>;
  /** The options of the step. */
  readonly options: GraphStepOptions<Output>;
  /** The steps and branches that must end before the step starts. */
  readonly dependencies: readonly AnyNode[];
  /** Carries the types only; never set. */
  declare readonly __types?: { readonly input: Input; readonly output: Output; readonly after: After };

  /** Use `step(…)`, which checks its arguments. */
  constructor(
    name: Name,
    fn: (ctx: StepContext<Input>) => Output | Promise<Output>,
    options: GraphStepOptions<Output>,
    dependencies: readonly AnyNode[] = [],
  ) {
    this.name = name;
    this.fn = fn;
    this.options = options;
    this.dependencies = dependencies;
  }

  /**
   * Returns this step with further predecessors: it starts when all of them are completed or skipped.
   *
   * @example
   * ```ts
   * export const order = graph("order", [validate, fraud.after(validate), charge.after(validate, fraud)]);
   * ```
   */
  after<const Nodes extends readonly AnyNode[]>(
    ...nodes: Nodes
  ): StepHandle<Name, Input, Output, After | Nodes[number]["name"]> {
    return new StepHandle(this.name, this.fn, this.options, [...this.dependencies, ...checkNodes(this.name, nodes)]);
  }
}

type Cases = Readonly<Record<string, readonly AnyNode[]>>;

/** A branch of a graph, as `branch(…)` returns it. `After` are the names of its predecessors. */
export class BranchHandle<Name extends string, Of extends Cases, After extends string = never> {
  /** Distinguishes branches from steps. */
  readonly kind = "branch";
  /** The name of the branch. */
  readonly name: Name;
  /** The function that returns the name of a case. */
  readonly choose: (ctx: StepContext<any>) => string | Promise<string>;
  /** The steps of each case, by the name of the case. */
  readonly cases: Of;
  /** The steps and branches that must end before the branch chooses. */
  readonly dependencies: readonly AnyNode[];
  /** Carries the types only; never set. */
  declare readonly __types?: { readonly after: After };

  /** Use `branch(…)`, which checks its arguments. */
  constructor(
    name: Name,
    choose: (ctx: StepContext<any>) => string | Promise<string>,
    cases: Of,
    dependencies: readonly AnyNode[] = [],
  ) {
    this.name = name;
    this.choose = choose;
    this.cases = cases;
    this.dependencies = dependencies;
  }

  /** Returns this branch with further predecessors: `choose` is called when all of them are completed or skipped. */
  after<const Nodes extends readonly AnyNode[]>(
    ...nodes: Nodes
  ): BranchHandle<Name, Of, After | Nodes[number]["name"]> {
    return new BranchHandle(this.name, this.choose, this.cases, [
      ...this.dependencies,
      ...checkNodes(this.name, nodes),
    ]);
  }
}

/**
 * Defines a step of a graph. Annotate `ctx` as `StepContext<Input>` to declare the input of the graph. Throws an
 * InvalidInputError if the name or an option is invalid.
 *
 * @example
 * ```ts
 * const validate = step("validate", async (ctx: StepContext<Order>) => ({ total: ctx.input.total }));
 * const charge = step("charge", (ctx) => pay(ctx.output(validate).total), {
 *   retry: { attempts: 5 },
 *   compensate: (_ctx, receipt) => refund(receipt),
 * });
 * ```
 */
export function step<const Name extends string, Input = unknown, Output = unknown>(
  name: Name,
  fn: (ctx: StepContext<Input>) => Output | Promise<Output>,
  options: GraphStepOptions<Output> = {},
): StepHandle<Name, Input, Output> {
  checkNodeName(name);
  if (typeof fn !== "function") throw new InvalidInputError(`Step "${name}" needs a function.`);
  checkOptions(`Step "${name}"`, options, stepOptions);
  const { onCrash, concurrency, compensate } = options;
  if (onCrash !== undefined && onCrash !== "rerun" && onCrash !== "pause")
    throw new InvalidInputError(`onCrash of step "${name}" must be "rerun" or "pause", not ${String(onCrash)}.`);
  if (concurrency !== undefined) checkWholeNumber(`concurrency of step "${name}"`, concurrency);
  checkStepLimit(`Step "${name}"`, options.limit, options.units);
  if (compensate !== undefined && typeof compensate !== "function")
    throw new InvalidInputError(`compensate of step "${name}" must be a function.`);
  if (options.timeout !== undefined) parseDuration(options.timeout, `timeout of step "${name}"`);
  if (options.retry !== undefined) resolveRetry(options.retry);
  return new StepHandle(name, fn, options);
}

/**
 * Defines a branch of a graph: `choose` returns the name of a case, which is recorded, and the steps of the other cases are
 * skipped. Throws an InvalidInputError if `cases` is empty.
 *
 * @example
 * ```ts
 * branch("route", (ctx) => (ctx.output(fraud).score > 0.9 ? "review" : "auto"), {
 *   review: [manualReview],
 *   auto: [approve],
 * }).after(fraud);
 * ```
 */
export function branch<const Name extends string, const Of extends Cases>(
  name: Name,
  choose: (ctx: StepContext<any>) => (keyof Of & string) | Promise<keyof Of & string>,
  cases: Of,
): BranchHandle<Name, Of> {
  checkNodeName(name);
  if (typeof choose !== "function")
    throw new InvalidInputError(`Branch "${name}" needs a function that returns the name of a case.`);
  if (typeof cases !== "object" || cases === null || Object.keys(cases).length === 0)
    throw new InvalidInputError(`Branch "${name}" needs at least one case.`);
  for (const [label, nodes] of Object.entries(cases)) {
    checkName("step", label);
    if (!Array.isArray(nodes))
      throw new InvalidInputError(`Case "${label}" of branch "${name}" must be a list of steps.`);
    checkNodes(name, nodes);
  }
  return new BranchHandle(name, choose, cases);
}

export function retryOf(options: GraphStepOptions, defaults: RetryPolicy): RetryPolicy {
  return options.retry === undefined ? defaults : resolveRetry(options.retry, defaults);
}

function checkNodes<Nodes extends readonly AnyNode[]>(owner: string, nodes: Nodes): Nodes {
  for (const node of nodes) {
    if (!isNode(node))
      throw new InvalidInputError(`"${owner}" takes steps and branches made by step(…) and branch(…).`);
  }
  return nodes;
}

export const isNode = (value: unknown): value is AnyNode =>
  value instanceof StepHandle || value instanceof BranchHandle;

function checkNodeName(name: unknown): void {
  const checkedName = checkName("step", name);
  if (checkedName.includes(scopeSeparator))
    throw new InvalidInputError(`The step name "${checkedName}" contains "${scopeSeparator}"; choose another.`);
}
