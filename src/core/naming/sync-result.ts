/** Checks the results of user callbacks that must be synchronous: exception rules, backoffs, keys. */

import { InvalidInputError } from "../errors/errors.js";
import { guardPromise } from "../errors/guarded-promise.js";

/**
 * Returns the result, or throws when it is a promise. Without this check an async callback would always count as true, because
 * a promise is truthy, and a rejection would end the process.
 *
 * @param callbackName such as "retryIf"
 */
export function requireSyncResult<Result>(callbackName: string, result: Result): Result {
  if (!(result instanceof Promise)) return result;
  guardPromise(result);
  throw new InvalidInputError(`${callbackName} must be synchronous, but it is async or returned a promise.`);
}
