/** Where Pawl's own words go when it is given no logger: warnings and errors to the console, the rest nowhere. */
import type { Logger } from "../define/context.js";

/** By this it is known that the lines are not read. */
export const discardLog = (): void => {};

export const defaultLogger: Logger = {
  debug: discardLog,
  info: discardLog,
  warn: (...args) => console.warn(...args),
  error: (...args) => console.error(...args),
};
