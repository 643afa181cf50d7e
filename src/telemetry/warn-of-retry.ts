import type { Logger } from "../define/context.js";

/** Something failed and will be tried again. That a server cannot be reached is told by its store, once for all who notice. */
export function warnOfRetry(log: Logger, message: string, error: unknown): void {
  if (isUnreachable(error)) log.debug(message, error);
  else log.warn(message, error);
}

export function isUnreachable(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { unreachable?: unknown }).unreachable === true;
}
