/**
 * Fingerprints of errors. Errors of the same step and class whose messages differ only in ids, numbers and quoted values
 * have the same fingerprint, so that people see one problem instead of a thousand failed runs.
 */
import type { Failure } from "../encoding/error-record.js";
import { sha256Hex } from "../naming/ids.js";

/** The number of characters of a fingerprint. */
const fingerprintLength = 16;
const textPrefix = '{"fingerprint":"';
const messageLength = 200;

/** @param step the step that threw the error; null if code outside of a step did */
export function fingerprintOf({ name, message }: Pick<Failure, "name" | "message">, step: string | null): string {
  return sha256Hex(JSON.stringify([step, name, normalizeMessage(message)])).slice(0, fingerprintLength);
}

/**
 * Adds the fingerprint as the first field, so that a column of the database can cut it out of the encoded text (see
 * `store/sql/generated-columns.ts`).
 */
export const withFingerprint = <T extends object>(fingerprint: string, fields: T) => ({ fingerprint, ...fields });

/** The fingerprint at the beginning of an encoded text; null if the text has none. */
export function fingerprintIn(text: string | null): string | null {
  if (text?.startsWith(textPrefix) !== true) return null;
  return text.slice(textPrefix.length, textPrefix.length + fingerprintLength);
}

/** Replaces what differs between occurrences of the same error, in the first line of its message. */
export function normalizeMessage(message: string): string {
  const [firstLine = ""] = message.split("\n", 1);
  return firstLine
    .slice(0, 2_000)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "<id>")
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?/g, "<time>")
    .replace(/\bhttps?:\/\/[^\s"'<>]+/g, "<url>")
    .replace(/[^\s"'<>@]+@[^\s"'<>@]+\.[a-z]+/gi, "<email>")
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, "<text>")
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, "<id>")
    .replace(/\d+(?:[.,]\d+)*/g, "<n>")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, messageLength);
}
