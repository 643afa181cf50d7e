/** Decides by a retry policy what happens after an exception in a step: another attempt, a pause or a failure. */

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

/** @param random a number from 0 up to, but not including, 1, for the jitter */
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

/** Whether another attempt would fail in the same way: a value cannot be stored, or the code misuses its graph. */
export const isNotRetryable = (error: unknown): boolean =>
  error instanceof SerializationError || error instanceof PayloadTooLargeError || error instanceof GraphError;

/**
 * Whether the error only postpones the step and does not use up an attempt: a TransientError of user code, or a transient
 * error of the database in a transactional step.
 */
export function isTransientError(error: unknown): boolean {
  return error instanceof TransientError || (error instanceof StoreError && error.transient);
}
