/** Hooks around the executions of steps: their types, and the order in which they are called. */

import { InvalidInputError, InvalidStateError } from "../core/errors/errors.js";
import { guardPromise } from "../core/errors/guarded-promise.js";
import { toSafeThrown } from "../core/errors/safe-thrown.js";
import { FlowControlInterrupt } from "../core/run/flow-control.js";

import type { Awaitable } from "./awaitable.js";
import type { Logger, WorkflowContext } from "./context.js";

/** The execution of a step that a hook is called for. */
export interface StepExecution {
  /** The id of the execution; see `run.executions()`. */
  readonly id: string;
  /** The name of the step. */
  readonly step: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** In `afterStepExecution`: the exception that ended the execution, if there was one. */
  readonly error?: unknown;
  /** In `afterStepExecution`: the flow control that ended the execution, such as "skip" or "cancel", if there was one. */
  readonly flow?: string;
}

/** The `ctx` of the hooks of a function or a graph: facts about the run and flow control. Hooks cannot record anything. */
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

/** Hooks of a function or a graph. An exception in a hook is treated like one of the step: the step's retry policy applies. */
export interface StepHooks<Input = any> {
  /** Called before each execution of a step. If it throws, the step does not run. */
  beforeStepExecution?(execution: StepExecution, ctx: HookContext<Input>): Awaitable<void>;
  /** Called after each execution of a step, however it ended. */
  afterStepExecution?(execution: StepExecution, ctx: HookContext<Input>): Awaitable<void>;
  /**
   * Called around each execution of a step. It must call `next`, which runs the step.
   *
   * @example
   * ```ts
   * const traced = workflow("traced", {
   *   aroundStepExecution: async ({ step }, next) => tracer.startActiveSpan(step, () => next()),
   * }, async (ctx) => ctx.step("work", () => 42));
   * ```
   */
  aroundStepExecution?(execution: StepExecution, next: () => Promise<void>, ctx: HookContext<Input>): Awaitable<void>;
}

export const hookNames = ["beforeStepExecution", "afterStepExecution", "aroundStepExecution"] as const;

/** Returns the hooks among the options; null if there are none, so that executing a step does not call hooks at all. */
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

/** The hooks of one execution, bound to its context. */
export interface BoundHooks {
  before(execution: StepExecution): unknown;
  after(execution: StepExecution): unknown;
  around(execution: StepExecution, next: () => Promise<void>): unknown;
}

export function bindHooks(hooks: StepHooks, ctx: HookContext): BoundHooks {
  return {
    before: (execution) => hooks.beforeStepExecution?.(execution, ctx),
    after: (execution) => hooks.afterStepExecution?.(execution, ctx),
    around: (execution, next) =>
      hooks.aroundStepExecution === undefined ? next() : hooks.aroundStepExecution(execution, next, ctx),
  };
}

interface HookHost {
  readonly runId: string;
  readonly log: Logger;
  /** Calls user code in a watchdog frame; see `StepScope.inFrame`. */
  inFrame<T>(call: () => T): T;
}

/** Runs the body inside `around`, then `after`. The caller calls `before`, which must not run again after a durable wait. */
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
    // A hook may fail to await this promise, and an unhandled rejection would end the process, so the promise is guarded.
    // `await running` below awaits it in any case.
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

/** The exception of the step decides what happens next, so an exception of its `after` hook is only logged. */
async function callAfterHook(hooks: BoundHooks, execution: StepExecution, { runId, log }: HookHost): Promise<void> {
  try {
    await hooks.after(execution);
  } catch (hookError) {
    log.error(
      `Run ${runId}: afterStepExecution threw for step "${execution.step}", which had already ended; the first outcome stands.`,
      hookError,
    );
  }
}
