/** What the server's and the driver's errors mean for us. */
import { PawlError, StoreError } from "../../../core/errors/errors.js";
import { describeError } from "../../shared/reachability.js";

interface DriverError extends Error {
  /** Five characters from the server (SQLSTATE), or a name from the operating system. */
  readonly code?: string;
  readonly detail?: string;
  readonly table?: string;
  readonly constraint?: string;
}

const codeOf = (error: unknown): string => (error as DriverError | null)?.code ?? "";
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Deadlock, serialization failure: the server has rolled the transaction back. */
export const isRetryableConflict = (error: unknown): boolean => ["40P01", "40001"].includes(codeOf(error));

/**
 * A prepared statement that the connection does not have (any more), or whose tables were altered since: nothing ran, and
 * on a new connection it will.
 */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "26000" || (codeOf(error) === "0A000" && messageOf(error).includes("cached plan"));

/** `pg` says this before it has sent anything. */
const neverSentMessages = /not queryable|client was closed|pool after calling end/i;
export const wasNeverSent = (error: unknown): boolean =>
  codeOf(error) === "" && neverSentMessages.test(messageOf(error));

/** A statement of this transaction has failed before; it can only be rolled back. */
export const isTransactionAborted = (error: unknown): boolean => codeOf(error) === "25P02";

/** The server itself says that it ends this session: there is none left. */
export const isSessionTerminated = (error: unknown): boolean => /^(57P0[1235]|25P03)$/.test(codeOf(error));

const lostStates = /^(08...|57P0[1235]|58...|25P03)$/;
const lostCodes = /^E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/;
const lostMessages =
  /connection (terminated|ended|error|was closed|is silent)|client has encountered|not queryable|timeout exceeded|client was closed/i;

/** What PgBouncer says to parameters that it cannot set for each transaction anew. */
export const isRefusedParameter = (error: unknown): boolean => /unsupported startup parameter/i.test(messageOf(error));

/** The connection is of no use any more; whether what was last sent was done is not known. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof PawlError || isRefusedParameter(error)) return false;
  const code = codeOf(error);
  if (lostStates.test(code) || lostCodes.test(code)) return true;
  // Other SQLSTATEs are answers of a server that is well.
  return code === "" && lostMessages.test(messageOf(error));
}

/** Out of connections, memory or disk; starting up; read-only after a fail-over: it may work in a moment. */
const temporaryStates = /^(53...|57P03|55P03|57014|25006)$/;
const isTemporary = (error: unknown) => temporaryStates.test(codeOf(error));

/** The error as callers see it. */
export function toStoreError(error: unknown): Error {
  if (error instanceof PawlError || error instanceof TypeError) return error;
  const unreachable = isConnectionLost(error);
  const transient = unreachable || isRetryableConflict(error) || isStalePlan(error) || isTemporary(error);
  return new StoreError(`PostgreSQL: ${messageOf(error) || describeError(error)}`, {
    transient,
    unreachable,
    cause: error,
  });
}

/** Why there is no connection. What passes by itself, such as too many of them, keeps the server out of reach. */
export function toConnectError(error: unknown): Error {
  if (!isTemporary(error)) return toStoreError(error);
  return new StoreError(`PostgreSQL: ${messageOf(error)}`, { transient: true, unreachable: true, cause: error });
}

/** What an optimistic commit fails with when something was not as usual: an id that is taken, a count that is wrong. */
export function isFailedOptimisticCommit(error: unknown): boolean {
  const { code, table } = ((error as { cause?: unknown }).cause ?? error) as DriverError;
  return code === "22012" || (code === "23505" && (table === "pawl_runs" || table === "pawl_tasks"));
}

/** The run whose event number is taken, if that is what the error says. */
export function runOfDuplicateEvent(error: unknown): string | null {
  const { code, table, detail } = error as DriverError;
  if (code !== "23505" || table !== "pawl_events") return null;
  // Key (run_id, seq)=(0197…, 5) already exists. The values stand after the sign of equality in every language.
  return /=\(([0-9a-f-]{36}), ?\d+\)/.exec(detail ?? "")?.[1] ?? "";
}

/** Answers that the caller asked about (a taken event number) stay as they are. */
export const toStoreErrorUnlessDuplicate = (error: unknown): unknown =>
  (error as { code?: string } | null)?.code === "23505" ? error : toStoreError(error);
