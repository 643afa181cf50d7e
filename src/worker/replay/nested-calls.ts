/**
 * Detects durable calls inside the function of a step, which are forbidden. `ctx.sleep` in it would occupy the worker for
 * the whole wait, and `ctx.step` in it would not be repeated on replay once the outer step is recorded, so the code would
 * no longer match its log.
 *
 * A call before the function's first `await` is detected because the step's body is on the call stack. After an `await`,
 * only AsyncLocalStorage knows the step. On Node 20, AsyncLocalStorage slows down every promise of the process (about
 * 1 µs per step), so it is not used for functions that do not return a promise.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { PermanentError } from "../../core/errors/errors.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Attempt, Body } from "../step/attempt.js";

const attemptStorage = new AsyncLocalStorage<Attempt>();
/** Whether any body was tracked in this process; until then, the storage is empty and is not read. */
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

/** If an untracked step's function returned a promise, all steps of its workflow are tracked from now on. */
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
