/**
 * Finds durable calls that are made inside the function of a step. `ctx.sleep` there would hold its worker for the whole wait,
 * and `ctx.step` would not be called again once the step around it is recorded, so the code would no longer fit its log.
 *
 * A call that is made before the function first awaits is known by what is on the stack. Behind an `await` only
 * AsyncLocalStorage tells. On Node 20 its use slows down every promise of the process (about 1 µs per step), so it is not
 * used where it cannot find anything: for functions that return without a promise.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { PermanentError } from "../../core/errors/errors.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Attempt, Body } from "../step/attempt.js";

const attemptStorage = new AsyncLocalStorage<Attempt>();
/** Until a body was followed, there is nothing to ask for. */
let hasTrackedBody = false;

/** Workflows some of whose steps are plain functions that have returned a promise. */
const definitionsReturningPromises = new WeakSet<WorkflowDefinition>();

const AsyncFunction = (async () => {}).constructor;

/** Calls the body of a step whose calls are to be found also behind an `await`. */
export function callTracked(attempt: Attempt, body: Body): unknown {
  hasTrackedBody = true;
  return attemptStorage.run(attempt, body, attempt);
}

export const mustBeTracked = (definition: WorkflowDefinition, body: Body): boolean =>
  body instanceof AsyncFunction || definitionsReturningPromises.has(definition);

/** From now on the steps of this workflow are followed, whatever kind of function they are. */
export function noteReturned(definition: WorkflowDefinition, value: unknown): void {
  if (value instanceof Promise) definitionsReturningPromises.add(definition);
}

/** The execution in whose function this code runs; null when it runs in no step. */
export function trackedAttempt(): Attempt | null {
  return hasTrackedBody ? (attemptStorage.getStore() ?? null) : null;
}

export function createNestedCallError(call: string, step: string): PermanentError {
  return new PermanentError(
    `ctx.${call} was called inside the function of step "${step}". It would hold the worker while it waits, and would not be made again after a crash. Call it outside of the step, before or after it; or make it a step of a class or graph, whose functions may wait.`,
  );
}
