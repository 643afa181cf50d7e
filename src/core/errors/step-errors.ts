/** Errors that the code of a step throws to decide how the step continues. */

import type { Duration } from "../naming/duration.js";
import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/**
 * Throw this in a step when another attempt cannot succeed. The step fails without further attempts, and the run fails
 * unless its code catches the error.
 *
 * @example throw new PermanentError("the card was declined");
 */
export class PermanentError extends PawlError {
  readonly code = "PERMANENT_ERROR";
}

/**
 * Throw this in a step when a later attempt will succeed. The step runs again after `retryAfter`, and this attempt does not
 * count against the `attempts` of the step's retry policy.
 *
 * @example throw new TransientError("rate limited", { retryAfter: "30s" });
 */
export class TransientError extends PawlError {
  readonly code = "TRANSIENT_ERROR";
  /** How long to wait before the next attempt; when undefined, the retry policy of the step determines the delay. */
  readonly retryAfter: Duration | undefined;

  constructor(message?: string, options: ErrorOptions & { retryAfter?: Duration } = {}) {
    super(message, causeOf(options));
    this.retryAfter = options.retryAfter;
  }
}

/**
 * Throw this in a step when a person or another system has to act first. The run is paused until an operator resumes it,
 * until the signal `resumeOn` arrives, or until `recheckAfter` has passed; then the step runs again.
 *
 * @example throw new PauseError("waiting for approval", { resumeOn: "approved", recheckAfter: "1 day" });
 */
export class PauseError extends PawlError {
  readonly code = "PAUSE_ERROR";
  /** The name of the signal that resumes the run. */
  readonly resumeOn: string | undefined;
  /** How long the run stays paused before the step runs again without a signal or an operator. */
  readonly recheckAfter: Duration | undefined;

  constructor(message?: string, options: ErrorOptions & { resumeOn?: string; recheckAfter?: Duration } = {}) {
    super(message, causeOf(options));
    this.resumeOn = options.resumeOn;
    this.recheckAfter = options.recheckAfter;
  }
}

nameErrors({ PermanentError, TransientError, PauseError });
