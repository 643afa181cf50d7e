/** Answers of user functions that have to answer at once: rules about exceptions, backoffs, keys. */

import { InvalidInputError } from "../errors/errors.js";
import { guardPromise } from "../errors/guarded-promise.js";

/**
 * The answer, unless it is a promise. An async function in such a place is a mistake; without this, every promise would
 * count as "yes", and one that rejects would end the process.
 *
 * @param callbackName such as "retryIf"
 */
export function requireSyncResult<Answer>(callbackName: string, result: Answer): Answer {
  if (!(result instanceof Promise)) return result;
  guardPromise(result);
  throw new InvalidInputError(`${callbackName} must answer at once; it is async, or returned a promise.`);
}
