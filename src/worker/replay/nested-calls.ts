/**
 * Detects durable calls inside the function of a step. `ctx.sleep` there would occupy the worker for the whole wait,
 * and `ctx.step` would not be called again once the outer step is recorded, so the code would no longer match its log.
 *
 * A call before the first `await` of the function is detected by the current stack. After an `await`, only
 * AsyncLocalStorage knows the step. On Node 20 it slows down every promise of the process (about 1 µs per step), so it
 * is not used for functions that do not return a promise.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { PermanentError } from "../../core/errors/errors.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Attempt, Body } from "../step/attempt.js";

const attemptStorage = new AsyncLocalStorage<Attempt>();
/** Until a body was tracked, the storage need not be read. */
let hasTrackedBody = false;

/** Workflows with a step whose function is not async but has returned a promise. */
const definitionsReturningPromises = new WeakSet<WorkflowDefinition>();

const AsyncFunction = (async () => {}).constructor;

/** Calls the body of a step so that its calls are also detected after an `await`. */
export function callTracked(attempt: Attempt, body: Body): unknown {
  hasTrackedBody = true;
  return attemptStorage.run(attempt, body, attempt);
}

export const mustBeTracked = (definition: WorkflowDefinition, body: Body): boolean =>
  body instanceof AsyncFunction || definitionsReturningPromises.has(definition);

/** If a function returned a promise, all steps of its workflow are tracked from now on. */
export function noteReturned(definition: WorkflowDefinition, value: unknown): void {
  if (value instanceof Promise) definitionsReturningPromises.add(definition);
}

/** The attempt whose function runs this code; null outside of tracked steps. */
export function trackedAttempt(): Attempt | null {
  return hasTrackedBody ? (attemptStorage.getStore() ?? null) : null;
}

export function createNestedCallError(call: string, step: string): PermanentError {
  return new PermanentError(
    `ctx.${call} was called inside the function of step "${step}". It would occupy the worker while it waits, and would not be repeated after a crash. Call it outside of the step, before or after it; or make it a step of a class or graph, whose functions may wait.`,
  );
}
