/** Retry policies: whether a failed step is attempted again, and after which delay. */
import { InvalidInputError, PauseError, PermanentError, TransientError } from "../errors/errors.js";
import { retryAfterOf } from "../errors/thrown-options.js";
import { checkOptions } from "./check-options.js";
import { type Duration, parseDuration } from "./duration.js";
import { requireSyncResult } from "./sync-result.js";

/** How often a failed step is attempted again, and after which delays. */
export interface RetryOptions {
  /** How many times the step runs at most, the first time included; `Infinity` for no limit. Default 4. */
  readonly attempts?: number;
  /** The delay before the second attempt. Default 1 second. */
  readonly initial?: Duration;
  /** Each delay is this many times the delay before it; 1 makes all delays equal. Default 2. */
  readonly factor?: number;
  /** The longest delay. Default 1 hour. */
  readonly max?: Duration;
  /**
   * Varies the delay at random: `true` waits between 50% and 100% of the delay, a number such as 0.1 waits the delay ±10%,
   * and `false` waits exactly the delay. Default true.
   */
  readonly jitter?: boolean | number;
  /** Returns whether the step is attempted again after this error. By default every error leads to another attempt. */
  readonly retryIf?: (error: unknown) => boolean;
  /** Returns the delay after this attempt (1, 2, …). `initial`, `factor`, `max` and `jitter` do not apply to it. */
  readonly backoff?: (attempt: number, error: unknown) => Duration;
}

/** {@link RetryOptions}, checked and completed with the defaults. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly initialMs: number;
  readonly factor: number;
  readonly maxMs: number;
  readonly jitter: boolean | number;
  readonly retryIf: ((error: unknown) => boolean) | undefined;
  readonly backoff: ((attempt: number, error: unknown) => Duration) | undefined;
}

export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 4,
  initialMs: 1_000,
  factor: 2,
  maxMs: 3_600_000,
  jitter: true,
  retryIf: undefined,
  backoff: undefined,
};

const retryOptions = new Set<string>([
  "attempts",
  "initial",
  "factor",
  "max",
  "jitter",
  "retryIf",
  "backoff",
] satisfies (keyof RetryOptions)[]);

/** Checks the options. Called when a workflow is defined, so that a bad option is reported before any step fails. */
export function resolveRetry(options: RetryOptions = {}, defaults: RetryPolicy = DEFAULT_RETRY): RetryPolicy {
  checkOptions("retry", options, retryOptions);
  const { attempts = defaults.attempts, factor = defaults.factor, jitter = defaults.jitter } = options;
  const { retryIf = defaults.retryIf, backoff = defaults.backoff } = options;
  const isCount = attempts === Number.POSITIVE_INFINITY || (Number.isInteger(attempts) && attempts >= 1);
  const isFraction = typeof jitter === "number" && jitter >= 0 && jitter <= 1;
  check(isCount, "attempts", attempts, "1, 2, 3… or Infinity");
  check(Number.isFinite(factor) && factor >= 1, "factor", factor, "a number from 1 up");
  check(isFraction || typeof jitter === "boolean", "jitter", jitter, "true, false or a fraction from 0 to 1");
  check(retryIf === undefined || typeof retryIf === "function", "retryIf", retryIf, "a function");
  check(backoff === undefined || typeof backoff === "function", "backoff", backoff, "a function");
  return {
    attempts,
    initialMs: options.initial === undefined ? defaults.initialMs : parseDuration(options.initial, "retry initial"),
    factor,
    maxMs: options.max === undefined ? defaults.maxMs : parseDuration(options.max, "retry max"),
    jitter,
    retryIf,
    backoff,
  };
}

function check(isValid: boolean, name: string, value: unknown, expected: string): void {
  if (isValid) return;
  const valueText = typeof value === "object" && value !== null ? "an object" : String(value);
  throw new InvalidInputError(`The retry option ${name} cannot be ${valueText}; it must be ${expected}.`);
}

/**
 * Whether the step is attempted again after this attempt (1, 2, …) threw this error: never after a `PermanentError` or a
 * `PauseError`, always after a `TransientError`; after any other error, `attempts` and `retryIf` of the policy decide.
 */
export function shouldRetry(policy: RetryPolicy, attempt: number, error: unknown): boolean {
  if (error instanceof PermanentError || error instanceof PauseError) return false;
  if (error instanceof TransientError) return true;
  if (attempt >= policy.attempts) return false;
  return policy.retryIf === undefined || requireSyncResult("retryIf", policy.retryIf(error));
}

/**
 * The delay in milliseconds between this attempt (1, 2, …) and the next. A valid `retryAfter` of a `TransientError` is
 * used; otherwise the policy decides.
 *
 * @param random a random number from 0 to 1 for the jitter, so that runs that failed together are retried at different
 * times
 */
export function nextDelayMs(policy: RetryPolicy, attempt: number, random: number, error?: unknown): number {
  const requestedMs = retryAfterOf(error);
  if (requestedMs !== undefined) return requestedMs;
  if (policy.backoff !== undefined)
    return parseDuration(requireSyncResult("backoff", policy.backoff(attempt, error)), "backoff");
  const delay = exponentialDelayMs(policy, attempt);
  return Math.min(policy.maxMs, Math.round(delay * jitterFactor(policy.jitter, random)));
}

function exponentialDelayMs({ initialMs, factor, maxMs }: RetryPolicy, attempt: number): number {
  if (initialMs === 0) return 0; // The power below may be Infinity, and 0 × Infinity would be NaN.
  return Math.min(maxMs, initialMs * factor ** Math.max(0, attempt - 1));
}

function jitterFactor(jitter: boolean | number, random: number): number {
  const position = random >= 0 && random <= 1 ? random : 1;
  if (jitter === true) return 0.5 + position / 2;
  if (jitter === false) return 1;
  return 1 + jitter * (2 * position - 1);
}
