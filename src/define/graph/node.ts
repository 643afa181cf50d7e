/** The handles that a graph is made of: steps, and branches between them. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import { type RetryOptions, type RetryPolicy, resolveRetry } from "../../core/naming/retry-policy.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import type { WorkflowContext } from "../context.js";

/** What the function of a graph's step gets: all of `ctx`, and the outputs of the steps before it. */
export interface StepContext<Input = unknown> extends WorkflowContext<Input> {
  /** The same for every attempt at this step of this run: hand it to the payment provider. */
  readonly idempotencyKey: string;
  /** What that step returned. It must be one of those this one comes after, and not have been skipped. */
  output<Output>(step: StepHandle<string, any, Output, any>): Output;
  /** The same, or undefined when the step was skipped. */
  maybeOutput<Output>(step: StepHandle<string, any, Output, any>): Output | undefined;
}

export interface GraphStepOptions<Output = any> {
  /** What happens when it throws. Default: as the graph says. */
  readonly retry?: RetryOptions;
  /** Per attempt. */
  readonly timeout?: Duration;
  readonly onCrash?: "rerun" | "pause";
  /** How many runs may execute it at a time in one process; default: as many as there are. The others stand in line. */
  readonly concurrency?: number;
  /** Undoes it, when the run fails or is canceled after it: in reverse order of completion, durably. */
  compensate?(ctx: StepContext<any>, output: Output): unknown;
}

const stepOptions = new Set<string>([
  "retry",
  "timeout",
  "onCrash",
  "concurrency",
  "compensate",
] satisfies (keyof GraphStepOptions)[]);

export type AnyNode = StepHandle<string, any, any, any> | BranchHandle<string, any, any>;

/** `After` are the names of the steps it comes after. */
export class StepHandle<Name extends string, Input, Output, After extends string = never> {
  readonly kind = "step";
  readonly name: Name;
  readonly fn: (ctx: StepContext<Input>) => Output | Promise<Output>;
  readonly options: GraphStepOptions<Output>;
  readonly dependencies: readonly AnyNode[];
  /** Carries the types only. */
  declare readonly __types?: { readonly input: Input; readonly output: Output; readonly after: After };

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

  /** The same step, placed behind these: it begins when all of them are done. */
  after<const Nodes extends readonly AnyNode[]>(
    ...nodes: Nodes
  ): StepHandle<Name, Input, Output, After | Nodes[number]["name"]> {
    return new StepHandle(this.name, this.fn, this.options, [...this.dependencies, ...checkNodes(this.name, nodes)]);
  }
}

type Cases = Readonly<Record<string, readonly AnyNode[]>>;

export class BranchHandle<Name extends string, Of extends Cases, After extends string = never> {
  readonly kind = "branch";
  readonly name: Name;
  readonly choose: (ctx: StepContext<any>) => string | Promise<string>;
  readonly cases: Of;
  readonly dependencies: readonly AnyNode[];
  /** Carries the types only. */
  declare readonly __types?: { readonly after: After };

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

  after<const Nodes extends readonly AnyNode[]>(
    ...nodes: Nodes
  ): BranchHandle<Name, Of, After | Nodes[number]["name"]> {
    return new BranchHandle(this.name, this.choose, this.cases, [
      ...this.dependencies,
      ...checkNodes(this.name, nodes),
    ]);
  }
}

/** A step of a graph. `ctx` of type `StepContext<Input>` says what the graph's input is. */
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
    throw new InvalidInputError(`onCrash of step "${name}" is "rerun" or "pause", not ${String(onCrash)}.`);
  if (concurrency !== undefined) checkWholeNumber(`concurrency of step "${name}"`, concurrency);
  if (compensate !== undefined && typeof compensate !== "function")
    throw new InvalidInputError(`compensate of step "${name}" must be a function.`);
  if (options.timeout !== undefined) parseDuration(options.timeout, `timeout of step "${name}"`);
  if (options.retry !== undefined) resolveRetry(options.retry);
  return new StepHandle(name, fn, options);
}

/** Chooses one of its cases, once, and records the choice; the steps of the others are skipped. */
export function branch<const Name extends string, const Of extends Cases>(
  name: Name,
  choose: (ctx: StepContext<any>) => (keyof Of & string) | Promise<keyof Of & string>,
  cases: Of,
): BranchHandle<Name, Of> {
  checkNodeName(name);
  if (typeof choose !== "function") throw new InvalidInputError(`Branch "${name}" needs a function that chooses.`);
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
  const checked = checkName("step", name);
  if (checked.includes(scopeSeparator))
    throw new InvalidInputError(`The step name "${checked}" contains "${scopeSeparator}"; choose another.`);
}
