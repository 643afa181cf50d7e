/** A logger is code of the user, and is called in places where an exception would end the worker. */
import type { Logger } from "../define/context.js";
import { quiet } from "./logger.js";

const levels = ["debug", "info", "warn", "error"] as const;
const safe = new WeakSet<Logger>();

/**
 * The logger, made so that whatever it throws or rejects with is told once on the console, and otherwise passed over.
 * Other members of it (pino's `child`, for one) stay within reach of code that uses `ctx.log`.
 */
export function safeLogger(logger: Logger): Logger {
  if (safe.has(logger)) return logger;
  let hasComplained = false;
  const complain = (error: unknown): void => {
    if (hasComplained) return;
    hasComplained = true;
    try {
      console.error("The logger that Pawl was given failed; further failures of it are not told.", error);
    } catch {
      // There is no other place to tell it.
    }
  };
  const guard = Object.create(logger) as Record<(typeof levels)[number], Logger["debug"]>;
  for (const level of levels) {
    const value = logger[level] === quiet ? quiet : calls(logger, level, complain);
    Object.defineProperty(guard, level, { value, writable: true, configurable: true, enumerable: true });
  }
  safe.add(guard);
  return guard;
}

/** Looked up at each call: the level of a logger can change while the program runs. */
function calls(logger: Logger, level: (typeof levels)[number], complain: (error: unknown) => void): Logger["debug"] {
  return (...args) => {
    try {
      const answer: unknown = logger[level](...args);
      if (answer instanceof Promise) answer.catch(complain);
    } catch (error) {
      complain(error);
    }
  };
}
