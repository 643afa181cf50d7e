import type { Logger } from "../define/context.js";

/** Something failed and will be tried again. That a server cannot be reached is told by its store, once for all who notice. */
export function warnOf(log: Logger, what: string, error: unknown): void {
  if (isUnreachable(error)) log.debug(what, error);
  else log.warn(what, error);
}

export function isUnreachable(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { unreachable?: unknown }).unreachable === true;
}
