/** Classifies errors of the driver and the server, and converts them to errors of Pawl. */
import { PawlError, StoreError } from "../../core/errors/errors.js";
import { describeError as describeCause } from "../shared/reachability.js";
import { NoAnswerError } from "../shared/statement-deadline.js";

interface DriverError extends Error {
  readonly code?: string;
  /** The index of the failed statement in its batch. */
  readonly statementIndex?: number;
}

const codeOf = (error: unknown): string => String((error as DriverError | null)?.code ?? "");
const messageOf = (error: unknown): string => String((error as DriverError | null)?.message ?? error);

/** Parses "Server returned HTTP status 429" (HTTP) and "Unexpected server response: 404" (web socket handshake). */
function statusOf(error: unknown): number | null {
  const [, status] = /(?:HTTP status|server response:?) (\d{3})/.exec(messageOf(error)) ?? [];
  return status === undefined ? null : Number(status);
}

/**
 * Whether the server closed the socket because it rejects this message. Sending it again would have the same result.
 */
const isMessageRejected = (error: unknown): boolean => /closed with code (1003|1007|1009)/.test(messageOf(error));

const connectionErrorCodes = new Set([
  "HRANA_WEBSOCKET_ERROR",
  "HRANA_CLOSED_ERROR",
  "HRANA_PROTO_ERROR",
  "SERVER_ERROR",
  "STREAM_EXPIRED",
]);

/** Whether the connection is lost. It is then unknown whether the server has executed the statements. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof NoAnswerError) return true;
  if (error instanceof PawlError || isMessageRejected(error)) return false;
  const status = statusOf(error);
  if (status !== null) return status >= 500 || status === 408;
  if (connectionErrorCodes.has(codeOf(error))) return true;
  // The first text comes from a client that was closed with requests in flight, the other two from Node's fetch.
  return /manually closed|fetch failed|^terminated$/.test(messageOf(error));
}

/** Whether no connection was made, so that nothing was sent. */
const wasNotSent = (error: unknown): boolean =>
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(
    `${messageOf(error)} ${messageOf((error as Error).cause ?? "")} ${codeOf((error as Error).cause)}`,
  );

/**
 * Whether the server executed nothing because of another transaction or too many requests. The same call may soon
 * succeed.
 */
const isRejectedAsBusy = (error: unknown): boolean =>
  codeOf(error) === "SQLITE_BUSY" || isTransactionTimeout(error) || statusOf(error) === 429;

/**
 * Whether the server rolled this transaction back to give its write lock to a writer that had waited for five seconds.
 */
export const isTransactionTimeout = (error: unknown): boolean => codeOf(error) === "TRANSACTION_TIMEOUT";

/** Whether it is certain that the server has written nothing, so that a write may be repeated. */
export const isSafeToRepeat = (error: unknown): boolean => isRejectedAsBusy(error) || wasNotSent(error);

export const isReadRetryable = (error: unknown): boolean => isRejectedAsBusy(error) || isConnectionLost(error);

export const isResponseTooLarge = (error: unknown): boolean => codeOf(error) === "RESPONSE_TOO_LARGE";

/**
 * Whether the server refused the token. This is known only over HTTP: sqld closes a web socket without giving the
 * reason.
 */
export const isUnauthorized = (error: unknown): boolean => statusOf(error) === 401 || statusOf(error) === 403;

/** Returns the index of the guard that refused the batch (see statement-plan.ts), or null for any other error. */
export function failedGuardIndex(error: unknown): number | null {
  const { statementIndex } = error as DriverError;
  if (statementIndex === undefined || codeOf(error) !== "SQLITE_CONSTRAINT") return null;
  return /NOT NULL constraint failed/.test(messageOf(error)) ? statementIndex : null;
}

/** Returns the index of the failed statement in its batch, or null if no single statement failed. */
export const failedStatementIndex = (error: unknown): number | null => (error as DriverError).statementIndex ?? null;

/** Converts an error of the driver or the server to a StoreError, and returns any other error unchanged. */
export function toStoreError(error: unknown, description: string): unknown {
  if (error instanceof PawlError) return error;
  const unreachable = isConnectionLost(error);
  if (!unreachable && codeOf(error) === "") return error;
  const transient = unreachable || isRejectedAsBusy(error);
  return new StoreError(`${description}: ${describeError(error)}`, { transient, unreachable, cause: error });
}

/** Removes repeated codes from the driver's text, as in "SQLITE_CONSTRAINT: SQLITE_CONSTRAINT: SQLite error: …". */
function describeError(error: unknown): string {
  const cause = (error as Error).cause;
  // An error of fetch says only "fetch failed"; the reason is in its cause.
  const text = describeCause(messageOf(error) === "fetch failed" && cause !== undefined ? cause : error);
  const code = codeOf(error);
  return code === "" ? text : `${code}: ${text.replaceAll(`${code}: `, "")}`;
}
