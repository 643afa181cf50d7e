import type { Logger } from "../define/context.js";

/** Warns of a failure that will be retried. If the server cannot be reached, the store has warned already, once for all callers. */
export function warnOfRetry(log: Logger, message: string, error: unknown): void {
  if (isUnreachable(error)) log.debug(message, error);
  else log.warn(message, error);
}

export function isUnreachable(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { unreachable?: unknown }).unreachable === true;
}
