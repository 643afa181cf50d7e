import type { PauseError } from "../core/errors.js";
import { event, type NewEvent } from "../core/event.js";
import { toFailure } from "../core/failure.js";
import { pauseTermsOf } from "../core/thrown-terms.js";

/** The event of a run that a PauseError stopped, at this step or in the handler itself. */
export function pausedBy(error: PauseError, place: { readonly node?: string }): NewEvent {
  const failure = toFailure(error);
  return event("run.paused", place, { reason: failure.message, error: failure, ...pauseTermsOf(error) });
}
