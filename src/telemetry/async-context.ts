/**
 * Chooses the async context (AsyncLocalStorage) that code runs in. Pawl works for many callers at once: a commit, a timer
 * or a wake-up that one caller triggers continues with the runs of others, and would carry the first caller's tenant,
 * transaction or span into them.
 */
import { AsyncResource } from "node:async_hooks";

/** Created when the library is loaded, before any request, so it carries no caller's AsyncLocalStorage values. */
const cleanContext = new AsyncResource("Pawl", { requireManualDestroy: true });

const newResource = () => new AsyncResource("PawlRun", { requireManualDestroy: true });

/** Runs Pawl's own work, which is on behalf of many callers. */
export function inCleanContext<Result>(work: () => Result): Result {
  return cleanContext.runInAsyncScope(work);
}

/**
 * Runs the code of one run in a separate context, because `enterWith` in that code would change a shared context for
 * all runs.
 */
export function inIsolatedContext<Result>(work: () => Result): Result {
  return cleanContext.runInAsyncScope(newResource).runInAsyncScope(work);
}

/**
 * Binds `work` to the current context: code that the worker calls again must run in the same context as the first time.
 */
export function bindContext<Args extends unknown[], Result>(
  work: (...args: Args) => Result,
): (...args: Args) => Result {
  const context = newResource();
  return (...args) => context.runInAsyncScope(work, undefined, ...args);
}
