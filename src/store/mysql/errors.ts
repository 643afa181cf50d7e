/** Classifies errors of the server and the driver, and converts them to errors of Pawl. */
import { PawlError, StoreError } from "../../core/errors/errors.js";
import { describeError } from "../shared/reachability.js";

interface DriverError extends Error {
  readonly code?: string;
  readonly errno?: number;
  readonly fatal?: boolean;
}

const duplicateKeyErrno = 1062;
const notNullErrno = 1048;

/**
 * These are the errors of a transaction that collides with another one: deadlock, lock wait timeout, and "record has
 * changed since last read" (MariaDB 11.6+). The server has rolled the transaction back, or the store does so before it
 * retries.
 */
const collisionErrnos = new Set([1213, 1205, 1020]);

/**
 * After these errors the same call may succeed soon: too many connections (1040, 1203, 1226), server is stopping
 * (1053), query interrupted (1317), network (1158 to 1161), connection killed (1927, 3169), connection to the server
 * lost (2006, 2013), idle for too long (4031), a primary that has become a replica (1290, 1792, 1836), and a node that
 * has left its Galera cluster before a statement (1047) or during COMMIT (1180).
 */
const transientErrnos = new Set([
  1040, 1047, 1053, 1158, 1159, 1160, 1161, 1180, 1203, 1226, 1290, 1317, 1792, 1836, 1927, 2006, 2013, 3169, 4031,
]);

const lostConnectionCode =
  /^(PROTOCOL_CONNECTION_LOST|PROTOCOL_SEQUENCE_TIMEOUT|E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN))$/;

export const isDuplicateKey = (error: unknown): boolean => (error as DriverError).errno === duplicateKeyErrno;
export const isNotNullViolation = (error: unknown): boolean => (error as DriverError).errno === notNullErrno;
export const isCollision = (error: unknown): boolean => collisionErrnos.has((error as DriverError).errno ?? 0);

/** Whether the connection cannot be used any more. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof PawlError) return false;
  const { code, errno, fatal, message } = error as DriverError;
  if (fatal === true || (code !== undefined && lostConnectionCode.test(code))) return true;
  if (errno !== undefined && [1053, 1927, 2006, 2013, 3169, 4031].includes(errno)) return true;
  // mysql2 reports a command on a connection that has already failed with these texts and no code.
  return errno === undefined && /closed state|connection (is )?closed|connection lost/i.test(message ?? "");
}

/** Whether the server itself has ended the session, so that no statement sent in it can still be executed. */
export const isSessionEnded = (error: unknown): boolean =>
  [1053, 1927, 3169, 4031].includes((error as DriverError).errno ?? 0);

/** Whether the savepoint does not exist, because its transaction has ended. */
export const isMissingSavepoint = (error: unknown): boolean => (error as DriverError).errno === 1305;

/** Converts an error of the server or the driver to a StoreError. */
export function toStoreError(error: unknown, context = "The database refused"): Error {
  if (error instanceof PawlError || error instanceof TypeError) return error;
  const { errno, message } = error as DriverError;
  const unreachable = isConnectionLost(error);
  const transient = unreachable || isCollision(error) || transientErrnos.has(errno ?? 0);
  return new StoreError(`${context}: ${message || describeError(error)}`, { transient, unreachable, cause: error });
}
