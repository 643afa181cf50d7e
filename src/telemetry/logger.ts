/** Where Pawl's own words go when nobody gives it a logger: warnings and errors to the console, the rest nowhere. */
import type { Logger } from "../define/context.js";

/** By this it is known that nobody reads. */
export const quiet = (): void => {};

export const defaultLogger: Logger = {
  debug: quiet,
  info: quiet,
  warn: (...args) => console.warn(...args),
  error: (...args) => console.error(...args),
};
