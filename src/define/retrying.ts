/** What an exception means where a retry policy decides: again for as long as it says, then the step has failed. */
import {
  PauseError,
  PayloadTooLargeError,
  PermanentError,
  SerializationError,
  StoreError,
  TransientError,
} from "../core/errors.js";
import { nextDelay, type RetryPolicy, shouldRetry } from "../core/retry.js";
import type { Reaction, StepHistory } from "./stepping.js";

export function byRetryPolicy(policy: RetryPolicy, error: unknown, { failures, setbacks }: StepHistory): Reaction {
  if (error instanceof PauseError) return { kind: "pause" };
  // The same value would be as unfit for storing the next time.
  if (error instanceof SerializationError || error instanceof PayloadTooLargeError || error instanceof PermanentError)
    return { kind: "fail" };
  const passing = isPassing(error);
  if (!passing && !shouldRetry(policy, failures + 1, error)) return { kind: "fail" };
  return { kind: "reattempt", waitMs: nextDelay(policy, setbacks + 1, Math.random(), error), counts: !passing };
}

/** "Come back later" is not a failure, whether user code says so or the database of a transactional step. */
export function isPassing(error: unknown): boolean {
  return error instanceof TransientError || (error instanceof StoreError && error.transient);
}
