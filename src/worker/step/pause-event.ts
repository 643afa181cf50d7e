import { toFailure } from "../../core/encoding/error-record.js";
import type { PauseError } from "../../core/errors/errors.js";
import { pauseOptionsOf } from "../../core/errors/thrown-options.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";

/**
 * Creates the event that pauses a run because of a `PauseError`, in a step or in the handler itself.
 *
 * @param recheckPausedMs the recheck interval for a pause that waits for a signal, if the error sets none; null: no recheck
 */
export function pausedBy(
  error: PauseError,
  place: { readonly node?: string },
  recheckPausedMs: number | null,
): NewEvent {
  const failure = toFailure(error);
  const pauseOptions = pauseOptionsOf(error);
  const isRechecked = pauseOptions.resumeOn !== undefined && recheckPausedMs !== null;
  const recheck = isRechecked ? { recheckMs: recheckPausedMs } : {};
  return newEvent("run.paused", place, { reason: failure.message, error: failure, ...recheck, ...pauseOptions });
}
