/** Answers of user functions that have to answer at once: rules about exceptions, backoffs, keys. */

import { InvalidInputError } from "../errors/errors.js";
import { guarded } from "../errors/guarded-promise.js";

/**
 * The answer, unless it is a promise. An async function in such a place is a mistake; without this, every promise would
 * count as "yes", and one that rejects would end the process.
 *
 * @param what such as "retryIf"
 */
export function promptAnswer<Answer>(what: string, answer: Answer): Answer {
  if (!(answer instanceof Promise)) return answer;
  guarded(answer);
  throw new InvalidInputError(`${what} must answer at once; it is async, or returned a promise.`);
}
