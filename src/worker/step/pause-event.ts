import { toFailure } from "../../core/encoding/error-record.js";
import type { PauseError } from "../../core/errors/errors.js";
import { pauseTermsOf } from "../../core/errors/thrown-terms.js";
import { event, type NewEvent } from "../../core/run/event.js";

/**
 * The event of a run that a PauseError stopped, at this step or in the handler itself.
 *
 * @param recheckPausedMs when a pause that a signal ends is looked at again, unless the error says so itself; null: never
 */
export function pausedBy(
  error: PauseError,
  place: { readonly node?: string },
  recheckPausedMs: number | null,
): NewEvent {
  const failure = toFailure(error);
  const terms = pauseTermsOf(error);
  const isRechecked = terms.resumeOn !== undefined && recheckPausedMs !== null;
  const recheck = isRechecked ? { recheckMs: recheckPausedMs } : {};
  return event("run.paused", place, { reason: failure.message, error: failure, ...recheck, ...terms });
}
