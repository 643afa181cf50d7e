import { parseDuration } from "../core/duration.js";
import type { PauseError } from "../core/errors.js";
import { event, type NewEvent } from "../core/event.js";
import { toFailure } from "../core/failure.js";

/** The event of a run that a PauseError stopped, at this step or in the handler itself. */
export function pausedBy(error: PauseError, place: { readonly node?: string }): NewEvent {
  return event("run.paused", place, {
    reason: error.message,
    error: toFailure(error),
    ...(error.resumeOn === undefined ? {} : { resumeOn: error.resumeOn }),
    ...(error.recheckAfter === undefined ? {} : { recheckMs: parseDuration(error.recheckAfter, "recheckAfter") }),
  });
}
