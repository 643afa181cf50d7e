/** Parses the times of `pawl schedules`. Without a zone, they are times of the schedule's zone, not of this machine. */
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { parseLocalInstant } from "../core/schedule/local-time.js";
import { parseInstant } from "../core/schedule/parse-instant.js";
import { CliError } from "./cli-error.js";

/** A date, a time, or how long ago it was ("2 days"). */
export function instantArgument(
  option: string,
  text: string | undefined,
  timeZone: string,
  now: number,
): number | undefined {
  if (text === undefined) return undefined;
  const instant = /^\d{4}-/.test(text) ? dateOf(text, timeZone) : ago(text, now);
  if (instant !== null) return instant;
  throw new CliError(
    `--${option} takes a time (2026-11-16, "2026-11-16 14:00", 2026-11-16T14:00Z) or how long ago ("2 days"), not "${text}".`,
  );
}

/** A time, or how long from now. */
export function untilArgument(text: string | undefined, timeZone: string): Date | Duration | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{4}-/.test(text) && ago(text, 0) !== null) return text as Duration;
  const instant = dateOf(text, timeZone);
  if (instant !== null) return new Date(instant);
  throw new CliError(`--until takes a time ("2026-11-16 14:00") or how long from now ("2 days"), not "${text}".`);
}

function dateOf(text: string, timeZone: string): number | null {
  try {
    return parseLocalInstant(timeZone, text) ?? parseInstant("The option", "it", text);
  } catch {
    return null;
  }
}

function ago(text: string, now: number): number | null {
  try {
    return now - parseDuration(text as Duration);
  } catch {
    return null;
  }
}
