/** What an exception means where a retry policy decides: again for as long as it says, then the step has failed. */

import {
  GraphError,
  PauseError,
  PayloadTooLargeError,
  PermanentError,
  SerializationError,
  StoreError,
  TransientError,
} from "../core/errors/errors.js";
import { nextDelayMs, type RetryPolicy, shouldRetry } from "../core/naming/retry-policy.js";
import type { Reaction, StepHistory } from "./step-engine.js";

/** @param random for the jitter: from 0 up to, but not including, 1 */
export function reactByRetryPolicy(
  policy: RetryPolicy,
  error: unknown,
  { failures, totalFailures }: StepHistory,
  random: number,
): Reaction {
  if (error instanceof PauseError) return { kind: "pause" };
  if (error instanceof PermanentError || isNotRetryable(error)) return { kind: "fail" };
  const isTransient = isTransientError(error);
  if (!isTransient && !shouldRetry(policy, failures + 1, error)) return { kind: "fail" };
  return {
    kind: "reattempt",
    waitMs: nextDelayMs(policy, totalFailures + 1, random, error),
    countsAsReattempt: !isTransient,
  };
}

/** Another attempt would end the same way: a value that cannot be stored, code that asks its graph for what it does not have. */
export const isNotRetryable = (error: unknown): boolean =>
  error instanceof SerializationError || error instanceof PayloadTooLargeError || error instanceof GraphError;

/** "Come back later" is not a failure, whether user code says so or the database of a transactional step. */
export function isTransientError(error: unknown): boolean {
  return error instanceof TransientError || (error instanceof StoreError && error.transient);
}
