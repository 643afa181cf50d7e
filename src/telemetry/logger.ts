/**
 * The logger of a Pawl that is created without one: it prints warnings and errors on the console, and discards the
 * rest.
 */
import type { Logger } from "../define/context.js";

/**
 * Discards log lines. Code that prepares a log line first compares the logger's method with this function, and skips
 * the work if they are the same.
 */
export const discardLog = (): void => {};

export const defaultLogger: Logger = {
  debug: discardLog,
  info: discardLog,
  warn: (...args) => console.warn(...args),
  error: (...args) => console.error(...args),
};
