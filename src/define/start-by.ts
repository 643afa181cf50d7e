/** The option `startBy` of workflows: how soon their runs must begin. */
import { InvalidInputError } from "../core/errors/errors.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";

/** @throws InvalidInputError for a duration of zero, within which no run could begin */
export function parseStartBy(startBy: Duration, what: string): number {
  const ms = parseDuration(startBy, what);
  if (ms > 0) return ms;
  throw new InvalidInputError(`The ${what} must be longer than 0 ms, because no run can begin within no time.`);
}
