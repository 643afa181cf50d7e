/** An attempt that ends with a transient error is postponed. Postponements are limited: each adds an event to the log. */
import { toFailure } from "../../core/encoding/error-record.js";

/** With the default backoff of up to an hour, a run reaches this limit after more than a month. */
const maxConsecutivePostponements = 1_000;

/** @param postponed how many attempts in a row ended with a transient error before this one */
export const isPostponedTooOften = (postponed: number): boolean => postponed + 1 >= maxConsecutivePostponements;

export const describePostponedTooOften = (subject: string, error: unknown): string =>
  `${subject} was postponed ${maxConsecutivePostponements} times in a row by transient errors: ${toFailure(error).message} Resume the run to allow as many attempts again.`;
