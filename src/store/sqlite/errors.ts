/** Converts errors of the drivers to errors of Pawl. */
import { PawlError, StoreError } from "../../core/errors/errors.js";

/** The primary result codes of SQLite that the store distinguishes. */
const resultCodes = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_PROTOCOL: 15,
  SQLITE_NOTADB: 26,
} as const;

type ResultCode = (typeof resultCodes)[keyof typeof resultCodes];

/**
 * After an error with one of these codes the same call may succeed later: another connection has the lock, or the
 * machine lacks a resource.
 */
const transientCodes: ReadonlySet<number | null> = new Set<ResultCode>([
  resultCodes.SQLITE_BUSY,
  resultCodes.SQLITE_LOCKED,
  resultCodes.SQLITE_NOMEM,
  resultCodes.SQLITE_IOERR,
  resultCodes.SQLITE_FULL,
  resultCodes.SQLITE_CANTOPEN,
  resultCodes.SQLITE_PROTOCOL,
]);

const explanations: Readonly<Partial<Record<number, string>>> = {
  [resultCodes.SQLITE_READONLY]: "is read-only",
  [resultCodes.SQLITE_CORRUPT]: "is damaged; restore it from a backup",
  [resultCodes.SQLITE_FULL]: "cannot grow: the disk is full",
  [resultCodes.SQLITE_CANTOPEN]: "cannot be opened",
  [resultCodes.SQLITE_NOTADB]: "is not a SQLite database",
};

/** Returns the primary result code of a driver's error, and null for any other value. */
function resultCodeOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  const { code, errcode, rawCode = errcode } = error as { code?: unknown; errcode?: unknown; rawCode?: unknown };
  // An error of node:sqlite or libsql contains the extended code as a number. An error of better-sqlite3 contains the
  // name of the extended code, which starts with the name of the primary code.
  if (typeof rawCode === "number") return rawCode & 0xff;
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return null;
  const primary = code.split("_", 2).join("_");
  return resultCodes[primary as keyof typeof resultCodes] ?? 1;
}

export const isBusy = (error: unknown): boolean => {
  const code = resultCodeOf(error);
  return code === resultCodes.SQLITE_BUSY || code === resultCodes.SQLITE_PROTOCOL;
};

/** Converts a driver's error to a StoreError that names the file, and returns any other value unchanged. */
export function toStoreError(error: unknown, description: string): unknown {
  if (error instanceof PawlError) return error;
  const code = resultCodeOf(error);
  if (code === null) return error;
  const { message } = error as Error;
  const explanation = explanations[code];
  const text = explanation === undefined ? `${description}: ${message}` : `${description} ${explanation} (${message})`;
  return new StoreError(`${text}.`, { transient: transientCodes.has(code), cause: error });
}
