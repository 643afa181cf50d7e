/** Parses the values of arguments and options: JSON, numbers, heroes, times. */
import { readFileSync } from "node:fs";
import { parseDuration } from "../core/naming/duration.js";
import { CliError, sentenceOf } from "./cli-error.js";

/** @param text the JSON, or "-" to read it from standard input */
export function jsonArgument(argumentName: string, text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const json = text === "-" ? readFileSync(0, "utf8") : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new CliError(
      `The ${argumentName} is not valid JSON (${sentenceOf(error)}); quote it for the shell: '{"a": 1}'`,
    );
  }
}

export function integerArgument(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new CliError(`--${option} takes a whole number, not "${text}".`);
}

/** Returns the duration in milliseconds. A number without a unit means milliseconds. */
export function durationArgument(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return parseDuration(/^\d+(\.\d+)?$/.test(text) ? Number(text) : text, option);
}

/** Parses a duration ("10m") or an instant ("2025-11-16T14:00Z"). */
export function durationOrDateArgument(option: string, text: string | undefined): number | Date | undefined {
  if (text === undefined || !/^\d{4}-/.test(text)) return durationArgument(option, text);
  const date = new Date(text);
  if (!Number.isNaN(date.getTime())) return date;
  throw new CliError(`--${option} takes a duration ("10m") or an instant ("2025-11-16T14:00Z"), not "${text}".`);
}

/** Parses "User:42". */
export function heroArgument(text: string | undefined): { readonly type: string; readonly id: string } | undefined {
  if (text === undefined) return undefined;
  const [, type, id] = /^([^:]+):(.+)$/.exec(text) ?? [];
  if (type === undefined || id === undefined)
    throw new CliError(`--hero takes a type and an id, as in User:42, not "${text}".`);
  return { type, id };
}

/** Parses an instant ("2025-11-16", "2025-11-16T14:00Z") or how long ago it was ("2h"). */
export function timeArgument(option: string, text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{4}-/.test(text)) {
    const at = Date.parse(text);
    if (!Number.isNaN(at)) return at;
  } else {
    try {
      return now - parseDuration(text);
    } catch {
      // The text is not a duration; the error below names both accepted forms.
    }
  }
  throw new CliError(`--${option} takes a date (2025-11-16) or how long ago ("2h"), not "${text}".`);
}
