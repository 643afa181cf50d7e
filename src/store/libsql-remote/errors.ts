/** What the driver's and the server's errors mean for the store. */
import { PawlError, StoreError } from "../../core/errors/errors.js";
import { describeError as describeCause } from "../shared/reachability.js";
import { NoAnswerError } from "../shared/statement-deadline.js";

interface DriverError extends Error {
  readonly code?: string;
  /** Of a batch: the statement that failed. */
  readonly statementIndex?: number;
}

const codeOf = (error: unknown): string => String((error as DriverError | null)?.code ?? "");
const messageOf = (error: unknown): string => String((error as DriverError | null)?.message ?? error);

/** Over HTTP, and in the handshake of a web socket: "Server returned HTTP status 429", "Unexpected server response: 404". */
function statusOf(error: unknown): number | null {
  const [, status] = /(?:HTTP status|server response:?) (\d{3})/.exec(messageOf(error)) ?? [];
  return status === undefined ? null : Number(status);
}

/** What was sent is not understood, and would not be understood a second time. */
const isMessageRejected = (error: unknown): boolean => /closed with code (1003|1007|1009)/.test(messageOf(error));

const connectionErrorCodes = new Set([
  "HRANA_WEBSOCKET_ERROR",
  "HRANA_CLOSED_ERROR",
  "HRANA_PROTO_ERROR",
  "SERVER_ERROR",
  "STREAM_EXPIRED",
]);

/** The connection is of no use; whether the statements were executed is not known. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof NoAnswerError) return true;
  if (error instanceof PawlError || isMessageRejected(error)) return false;
  const status = statusOf(error);
  if (status !== null) return status >= 500 || status === 408;
  if (connectionErrorCodes.has(codeOf(error))) return true;
  // Of a client that was closed with requests under way, and of Node's fetch.
  return /manually closed|fetch failed|^terminated$/.test(messageOf(error));
}

/** There was no connection, so nothing was sent. */
const wasNotSent = (error: unknown): boolean =>
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(
    `${messageOf(error)} ${messageOf((error as Error).cause ?? "")} ${codeOf((error as Error).cause)}`,
  );

/** The server did nothing, and the same may work in a moment: another transaction was in the way, or too many are. */
const isRejectedAsBusy = (error: unknown): boolean =>
  codeOf(error) === "SQLITE_BUSY" || isTransactionTimeout(error) || statusOf(error) === 429;

/** The server gave the write lock to another who had waited for five seconds, and rolled this transaction back. */
export const isTransactionTimeout = (error: unknown): boolean => codeOf(error) === "TRANSACTION_TIMEOUT";

/** Nothing was written. */
export const isSafeToRepeat = (error: unknown): boolean => isRejectedAsBusy(error) || wasNotSent(error);

export const isReadRetryable = (error: unknown): boolean => isRejectedAsBusy(error) || isConnectionLost(error);

export const isResponseTooLarge = (error: unknown): boolean => codeOf(error) === "RESPONSE_TOO_LARGE";

/** A web socket whose token is refused is closed without a word by sqld; over HTTP the status is 401. */
export const isUnauthorized = (error: unknown): boolean => statusOf(error) === 401 || statusOf(error) === 403;

/** The number of the statement of a batch that asked for a value which is not there: its guard refuses the batch. */
export function failedGuardIndex(error: unknown): number | null {
  const { statementIndex } = error as DriverError;
  if (statementIndex === undefined || codeOf(error) !== "SQLITE_CONSTRAINT") return null;
  return /NOT NULL constraint failed/.test(messageOf(error)) ? statementIndex : null;
}

/** The number of the statement of a batch that failed. */
export const failedStatementIndex = (error: unknown): number | null => (error as DriverError).statementIndex ?? null;

/** The error as callers see it; what is not of the driver or the server stays what it is. */
export function toStoreError(error: unknown, description: string): unknown {
  if (error instanceof PawlError) return error;
  const unreachable = isConnectionLost(error);
  if (!unreachable && codeOf(error) === "") return error;
  const transient = unreachable || isRejectedAsBusy(error);
  return new StoreError(`${description}: ${describeError(error)}`, { transient, unreachable, cause: error });
}

/** "SQLITE_CONSTRAINT: SQLITE_CONSTRAINT: SQLite error: …": the code is told once. */
function describeError(error: unknown): string {
  const cause = (error as Error).cause;
  // "fetch failed", and the reason in its cause.
  const text = describeCause(messageOf(error) === "fetch failed" && cause !== undefined ? cause : error);
  const code = codeOf(error);
  return code === "" ? text : `${code}: ${text.replaceAll(`${code}: `, "")}`;
}
