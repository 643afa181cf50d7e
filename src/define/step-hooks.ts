/** Hooks around the executions of steps: what they are told, and in which order they are called. */

import { InvalidInputError, InvalidStateError } from "../core/errors/errors.js";
import { guarded } from "../core/errors/guarded-promise.js";
import { toSafeThrown } from "../core/errors/safe-thrown.js";
import { FlowSignal } from "../core/run/flow-control.js";

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
export function checkHooks(of: string, options: StepHooks): StepHooks | null {
  const hooks: Record<string, unknown> = {};
  for (const name of hookNames) {
    const hook = options[name];
    if (hook === undefined) continue;
    if (typeof hook !== "function") throw new InvalidInputError(`${name} of ${of} must be a function.`);
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
  about: StepExecution,
  host: HookHost,
  body: () => unknown,
): Promise<unknown> {
  let output: unknown;
  let running: Promise<void> | null = null;
  const next = () => {
    if (running !== null)
      return guarded(
        Promise.reject(new InvalidStateError(`aroundStepExecution called next() twice for step "${about.step}".`)),
      );
    // A hook that does not await it is told all the same, below.
    running = guarded(
      (async () => {
        output = await host.inFrame(body);
      })(),
    );
    return running;
  };
  try {
    await host.inFrame(() => hooks.around(about, next));
    if (running === null)
      throw new InvalidStateError(`aroundStepExecution did not call next(), so step "${about.step}" did not run.`);
    await running;
  } catch (something) {
    const thrown = toSafeThrown(something);
    const ended = thrown instanceof FlowSignal ? { ...about, flow: thrown.action.kind } : { ...about, error: thrown };
    await tellAfter(hooks, ended, host);
    throw thrown;
  }
  await hooks.after(about);
  return output;
}

/** What went wrong first counts; what the hook adds is only logged. */
async function tellAfter(hooks: BoundHooks, about: StepExecution, { runId, log }: HookHost): Promise<void> {
  try {
    await hooks.after(about);
  } catch (broken) {
    log.error(`Run ${runId}: afterStepExecution failed after step "${about.step}" had.`, broken);
  }
}
