/**
 * Which async context (AsyncLocalStorage) code runs in. Pawl works for many callers at once: a commit, a timer or a wake-up
 * begun for one of them goes on with the runs of others, and would carry the first caller's tenant, transaction or span
 * into them.
 */
import { AsyncResource } from "node:async_hooks";

/** Made when the library is loaded, which is before any request: it has the stores of no caller. */
const cleanContext = new AsyncResource("Pawl", { requireManualDestroy: true });

const newResource = () => new AsyncResource("PawlRun", { requireManualDestroy: true });

/** For Pawl's own work, which is on behalf of many callers. */
export function inCleanContext<Result>(work: () => Result): Result {
  return cleanContext.runInAsyncScope(work);
}

/** For the code of one run. A context of its own, because `enterWith` in that code would change a shared one for all runs. */
export function inIsolatedContext<Result>(work: () => Result): Result {
  return cleanContext.runInAsyncScope(newResource).runInAsyncScope(work);
}

/** Calls `work` later in the context of now: code that is begun again must find what it found the first time. */
export function bindContext<Args extends unknown[], Result>(
  work: (...args: Args) => Result,
): (...args: Args) => Result {
  const context = newResource();
  return (...args) => context.runInAsyncScope(work, undefined, ...args);
}
