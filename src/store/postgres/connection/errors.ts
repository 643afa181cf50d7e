/** Classifies the errors of the server and of the driver. */
import { PawlError, StoreError } from "../../../core/errors/errors.js";
import { describeError } from "../../shared/reachability.js";

interface DriverError extends Error {
  /** The server's SQLSTATE (five characters), or an error name of the operating system. */
  readonly code?: string;
  readonly detail?: string;
  readonly table?: string;
  readonly constraint?: string;
}

const codeOf = (error: unknown): string => (error as DriverError | null)?.code ?? "";
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A deadlock or serialization failure: the server has rolled the transaction back. */
export const isRetryableConflict = (error: unknown): boolean => ["40P01", "40001"].includes(codeOf(error));

/**
 * The connection does not have the prepared statement, or its tables were altered since. Nothing was executed, and the
 * statement works on a new connection.
 */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "26000" || (codeOf(error) === "0A000" && messageOf(error).includes("cached plan"));

/** Messages with which `pg` fails before it has sent anything. */
const neverSentMessages = /not queryable|client was closed|pool after calling end/i;
export const wasNeverSent = (error: unknown): boolean =>
  codeOf(error) === "" && neverSentMessages.test(messageOf(error));

/** An earlier statement of the transaction has failed, so it can only be rolled back. */
export const isTransactionAborted = (error: unknown): boolean => codeOf(error) === "25P02";

/** The server reports that it ends the session, so Pawl need not terminate it. */
export const isSessionTerminated = (error: unknown): boolean => /^(57P0[1235]|25P03)$/.test(codeOf(error));

const lostStates = /^(08...|57P0[1235]|58...|25P03)$/;
const lostCodes = /^E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/;
const lostMessages =
  /connection (terminated|ended|error|was closed|is silent)|client has encountered|not queryable|timeout (exceeded|expired)|query read timeout|client was closed/i;

/** PgBouncer's error for startup parameters that it cannot set again for each transaction. */
export const isRefusedParameter = (error: unknown): boolean => /unsupported startup parameter/i.test(messageOf(error));

/** The connection cannot be used any more, and it is unknown whether its last statement was executed. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof PawlError || isRefusedParameter(error)) return false;
  const code = codeOf(error);
  if (lostStates.test(code) || lostCodes.test(code)) return true;
  // Any other SQLSTATE is the answer of a working server.
  return code === "" && lostMessages.test(messageOf(error));
}

/** Out of connections, memory or disk, starting up, or read-only after a fail-over: a retry may succeed soon. */
const temporaryStates = /^(53...|57P03|55P03|57014|25006)$/;
const isTemporary = (error: unknown) => temporaryStates.test(codeOf(error));

/** The error that callers of the store get. */
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

/** The error for a failed connect. A temporary cause, such as too many connections, counts as an unreachable server. */
export function toConnectError(error: unknown): Error {
  if (!isTemporary(error)) return toStoreError(error);
  return new StoreError(`PostgreSQL: ${messageOf(error)}`, { transient: true, unreachable: true, cause: error });
}

/** An optimistic commit has assumed something wrong: an id is taken (23505) or a count differs (22012). */
export function isFailedOptimisticCommit(error: unknown): boolean {
  const { code, table } = ((error as { cause?: unknown }).cause ?? error) as DriverError;
  return code === "22012" || (code === "23505" && (table === "pawl_runs" || table === "pawl_tasks"));
}

/** The run whose event number is taken; "" if the error does not name it, null for any other error. */
export function runOfDuplicateEvent(error: unknown): string | null {
  const { code, table, detail } = error as DriverError;
  if (code !== "23505" || table !== "pawl_events") return null;
  // "Key (run_id, seq)=(0197…, 5) already exists." The values follow the equals sign in every language.
  return /=\(([0-9a-f-]{36}), ?\d+\)/.exec(detail ?? "")?.[1] ?? "";
}

/** Unique violations stay as they are, because the caller handles them (an event number or id that is taken). */
export const toStoreErrorUnlessDuplicate = (error: unknown): unknown =>
  (error as { code?: string } | null)?.code === "23505" ? error : toStoreError(error);
