/** The ids of occurrences. They depend on nothing but the schedule and the instant, so every worker computes the same. */
import { derivedUuid } from "../naming/ids.js";

/**
 * The id of an occurrence and of its run. The incarnation tells a schedule from an earlier one of the same name that was
 * deleted.
 */
export function occurrenceId(schedule: string, incarnation: string, instant: number): string {
  return derivedUuid(instant, `${incarnation}:${instant}:${schedule}`);
}

/** The id of a row of skipped occurrences that begins with this instant. A backfill may still run the instant itself. */
export function skippedRowId(schedule: string, incarnation: string, instant: number, outcome: string): string {
  return derivedUuid(instant, `${incarnation}:${instant}:${outcome}:${schedule}`);
}

/** @param randomId a random text, because several manual occurrences may have the same instant */
export function manualOccurrenceId(schedule: string, instant: number, randomId: string): string {
  return derivedUuid(instant, `manual ${randomId}:${schedule}`);
}
