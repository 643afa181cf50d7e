/** The logger of a Pawl that is given none: warnings and errors go to the console, the rest is discarded. */
import type { Logger } from "../define/context.js";

/** Discards log lines. Code that would prepare one compares with this function first and saves the work. */
export const discardLog = (): void => {};

export const defaultLogger: Logger = {
  debug: discardLog,
  info: discardLog,
  warn: (...args) => console.warn(...args),
  error: (...args) => console.error(...args),
};
