/** Passing errors put an attempt off as often as they come, but not for ever: each time is an event in the log of the run. */
import { toFailure } from "../../core/encoding/error-record.js";

/** With the default backoff of up to an hour that is more than a month. */
const maxConsecutivePostponements = 1_000;

/** @param postponed how often in a row it was put off before */
export const isPostponedTooOften = (postponed: number): boolean => postponed + 1 >= maxConsecutivePostponements;

export const describePostponedTooOften = (subject: string, error: unknown): string =>
  `${subject} was put off ${maxConsecutivePostponements} times in a row by passing errors, and gets nowhere: ${toFailure(error).message} Resume the run to try as often again.`;
