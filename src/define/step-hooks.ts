/** Hooks around the executions of steps: what they are told, and in which order they are called. */

import { InvalidInputError, InvalidStateError } from "../core/errors/errors.js";
import { guardPromise } from "../core/errors/guarded-promise.js";
import { toSafeThrown } from "../core/errors/safe-thrown.js";
import { FlowControlInterrupt } from "../core/run/flow-control.js";

import type { Awaitable } from "./awaitable.js";
import type { Logger, WorkflowContext } from "./context.js";

/** What hooks are told about. */
export interface StepExecution {
  readonly id: string;
  readonly step: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** In `afterStepExecution`: what it threw, if it did. */
  readonly error?: unknown;
  /** In `afterStepExecution`: the flow control that ended it, such as "skip" or "cancel". */
  readonly flow?: string;
}

/** What the hooks of a function or a graph get of `ctx`: what the run is, and flow control. They record nothing themselves. */
export type HookContext<Input = any> = Pick<
  WorkflowContext<Input>,
  | "runId"
  | "workflowName"
  | "input"
  | "attempt"
  | "executionId"
  | "abortSignal"
  | "log"
  | "resumedBy"
  | "cancel"
  | "pause"
  | "skip"
  | "reattempt"
  | "finish"
  | "suspend"
>;

/** An exception in a hook is the step's own: its retry policy decides. */
export interface StepHooks<Input = any> {
  /** Called before each execution of a step. If it throws, the step does not run. */
  beforeStepExecution?(execution: StepExecution, ctx: HookContext<Input>): Awaitable<void>;
  /** Called after each, however it ended. */
  afterStepExecution?(execution: StepExecution, ctx: HookContext<Input>): Awaitable<void>;
  /** Called around each; `next` runs the step. */
  aroundStepExecution?(execution: StepExecution, next: () => Promise<void>, ctx: HookContext<Input>): Awaitable<void>;
}

export const hookNames = ["beforeStepExecution", "afterStepExecution", "aroundStepExecution"] as const;

/** null when there are none: then a step costs nothing more. */
export function checkHooks(owner: string, options: StepHooks): StepHooks | null {
  const hooks: Record<string, unknown> = {};
  for (const name of hookNames) {
    const hook = options[name];
    if (hook === undefined) continue;
    if (typeof hook !== "function") throw new InvalidInputError(`${name} of ${owner} must be a function.`);
    hooks[name] = hook;
  }
  return Object.keys(hooks).length === 0 ? null : (hooks as StepHooks);
}

/** The hooks of one execution. */
export interface BoundHooks {
  before(about: StepExecution): unknown;
  after(about: StepExecution): unknown;
  around(about: StepExecution, next: () => Promise<void>): unknown;
}

export function bindHooks(hooks: StepHooks, ctx: HookContext): BoundHooks {
  return {
    before: (about) => hooks.beforeStepExecution?.(about, ctx),
    after: (about) => hooks.afterStepExecution?.(about, ctx),
    around: (about, next) =>
      hooks.aroundStepExecution === undefined ? next() : hooks.aroundStepExecution(about, next, ctx),
  };
}

interface HookHost {
  readonly runId: string;
  readonly log: Logger;
  /** Calls user code that is not the first to be called in the body. */
  inFrame<T>(call: () => T): T;
}

/** The body inside `around`, then `after`; `before` is the caller's business, because it is not called again after a rest. */
export async function runWithHooks(
  hooks: BoundHooks,
  execution: StepExecution,
  host: HookHost,
  body: () => unknown,
): Promise<unknown> {
  let output: unknown;
  let running: Promise<void> | null = null;
  const next = () => {
    if (running !== null)
      return guardPromise(
        Promise.reject(new InvalidStateError(`aroundStepExecution called next() twice for step "${execution.step}".`)),
      );
    // A hook that does not await it is told all the same, below.
    running = guardPromise(
      (async () => {
        output = await host.inFrame(body);
      })(),
    );
    return running;
  };
  try {
    await host.inFrame(() => hooks.around(execution, next));
    if (running === null)
      throw new InvalidStateError(`aroundStepExecution did not call next(), so step "${execution.step}" did not run.`);
    await running;
  } catch (caught) {
    const thrown = toSafeThrown(caught);
    const endedExecution =
      thrown instanceof FlowControlInterrupt
        ? { ...execution, flow: thrown.action.kind }
        : { ...execution, error: thrown };
    await callAfterHook(hooks, endedExecution, host);
    throw thrown;
  }
  await hooks.after(execution);
  return output;
}

/** What went wrong first counts; what the hook adds is only logged. */
async function callAfterHook(hooks: BoundHooks, execution: StepExecution, { runId, log }: HookHost): Promise<void> {
  try {
    await hooks.after(execution);
  } catch (hookError) {
    log.error(`Run ${runId}: afterStepExecution failed after step "${execution.step}" had.`, hookError);
  }
}
