/** Errors that the code of a step throws to say what is to become of the step. */

import type { Duration } from "../naming/duration.js";
import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/**
 * Thrown in a step: trying again is pointless, so the run fails at once.
 *
 * @example throw new PermanentError("the card was declined");
 */
export class PermanentError extends PawlError {
  readonly code = "PERMANENT_ERROR";
}

/**
 * Thrown in a step: it will work later, so the run is parked and the step runs again.
 *
 * @example throw new TransientError("rate limited", { retryAfter: "30s" });
 */
export class TransientError extends PawlError {
  readonly code = "TRANSIENT_ERROR";
  /** When to try again; left out, the step's own backoff decides. */
  readonly retryAfter: Duration | undefined;

  constructor(message?: string, options: ErrorOptions & { retryAfter?: Duration } = {}) {
    super(message, causeOf(options));
    this.retryAfter = options.retryAfter;
  }
}

/**
 * Thrown in a step: a person or another system has to do something first. The run pauses until it is resumed, until the signal
 * `resumeOn` arrives, or until `recheckAfter` has passed; then the step runs again.
 *
 * @example throw new PauseError("waiting for approval", { resumeOn: "approved", recheckAfter: "1 day" });
 */
export class PauseError extends PawlError {
  readonly code = "PAUSE_ERROR";
  readonly resumeOn: string | undefined;
  readonly recheckAfter: Duration | undefined;

  constructor(message?: string, options: ErrorOptions & { resumeOn?: string; recheckAfter?: Duration } = {}) {
    super(message, causeOf(options));
    this.resumeOn = options.resumeOn;
    this.recheckAfter = options.recheckAfter;
  }
}

nameErrors({ PermanentError, TransientError, PauseError });
