import type { Logger } from "../define/context.js";

/**
 * Warns of a failed operation that the caller retries. If the server cannot be reached, the store has already warned
 * once for all callers, so the failure is logged at level debug only.
 */
export function warnOfRetry(log: Logger, message: string, error: unknown): void {
  if (isUnreachable(error)) log.debug(message, error);
  else log.warn(message, error);
}

export function isUnreachable(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { unreachable?: unknown }).unreachable === true;
}
