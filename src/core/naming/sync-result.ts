/** Checks the results of user callbacks that must be synchronous: exception rules, backoffs, keys. */

import { InvalidInputError } from "../errors/errors.js";
import { guardPromise } from "../errors/guarded-promise.js";

/**
 * Returns the result, or throws when the result is a promise. Without this check the result of an async callback would
 * always be treated as true, because a promise is truthy, and an unhandled rejection would end the process.
 *
 * @param callbackName the name of the callback for the error message, such as "retryIf"
 */
export function requireSyncResult<Result>(callbackName: string, result: Result): Result {
  if (!(result instanceof Promise)) return result;
  guardPromise(result);
  throw new InvalidInputError(`${callbackName} must be synchronous, but it is async or returned a promise.`);
}
