/** A logger is code of the user, and is called in places where an exception would end the worker. */
import type { Logger } from "../define/context.js";
import { quiet } from "./logger.js";

const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];

/** What a line of the log is about. */
export interface LogFields {
  readonly runId?: string;
  readonly workflow?: string;
  readonly step?: string | null;
  readonly attempt?: number | null;
  readonly [field: string]: unknown;
}

interface Guarded {
  readonly inner: Logger;
  readonly takesFields: boolean;
  readonly complain: (error: unknown) => void;
  /** Of a logger that was bound to fields: what they are, and the logger without them. */
  readonly bound: { readonly fields: LogFields; readonly root: Logger } | null;
}

const guards = new WeakMap<Logger, Guarded>();

/**
 * The logger, made so that whatever it throws or rejects with is told once on the console, and otherwise passed over.
 * Other members of it (pino's `child`, for one) stay within reach of code that uses `ctx.log`.
 *
 * pino and bunyan take an object first and the message second, and drop an error that comes behind the message. For them
 * `log.warn(message, error)` is turned around, so that the same call works with every logger.
 */
export function safeLogger(logger: Logger): Logger {
  return guards.has(logger) ? logger : guard(logger, complainOnce(), null);
}

/** The same logger with these fields in all its lines, if it can have children; otherwise itself. */
export function boundLogger(log: Logger, fields: LogFields): Logger {
  const known = guards.get(log);
  const child = (known?.inner as { child?: unknown } | undefined)?.child;
  if (known === undefined || typeof child !== "function") return log;
  try {
    const bound: unknown = Reflect.apply(child, known.inner, [fields]);
    if (!isLogger(bound)) return log;
    const root = known.bound?.root ?? log;
    return guard(bound, known.complain, { fields: { ...known.bound?.fields, ...fields }, root });
  } catch (error) {
    known.complain(error);
    return log;
  }
}

/** Writes one line about something: loggers that take fields, or have children, get them; the others the text alone. */
export function logAbout(log: Logger, level: Level, fields: LogFields, message: string, error?: unknown): void {
  const known = guards.get(log);
  // pino writes a field twice that a line repeats from its logger, and JSON with a key twice means something else to each reader.
  if (known?.bound != null) {
    const { root, fields: bound } = known.bound;
    return logAbout(root, level, { ...bound, ...fields }, message, error);
  }
  if (known?.takesFields === true) return log[level](error === undefined ? fields : { ...fields, err: error }, message);
  // A child for each line of level debug would cost more than the line.
  const bound = level === "debug" ? log : boundLogger(log, fields);
  bound[level](message, ...(error === undefined ? [] : [error]));
}

/** Whether lines of level debug are read at all, as far as the logger tells. */
export function debugIsRead(log: Logger): boolean {
  if (log.debug === quiet) return false;
  const inner = guards.get(log)?.inner as { isLevelEnabled?: unknown } | undefined;
  if (typeof inner?.isLevelEnabled !== "function") return true;
  try {
    return Reflect.apply(inner.isLevelEnabled, inner, ["debug"]) !== false;
  } catch {
    return true;
  }
}

function guard(inner: Logger, complain: (error: unknown) => void, bound: Guarded["bound"]): Logger {
  const takesFields = fieldsComeFirst(inner);
  const guarded = Object.create(inner) as Record<Level, Logger["debug"]>;
  for (const level of levels) {
    const value = inner[level] === quiet ? quiet : calls(inner, level, takesFields, complain);
    Object.defineProperty(guarded, level, { value, writable: true, configurable: true, enumerable: true });
  }
  guards.set(guarded, { inner, takesFields, complain, bound });
  return guarded;
}

function complainOnce(): (error: unknown) => void {
  let hasComplained = false;
  return (error) => {
    if (hasComplained) return;
    hasComplained = true;
    try {
      console.error("The logger that Pawl was given failed; further failures of it are not told.", error);
    } catch {
      // There is no other place to tell it.
    }
  };
}

/** Looked up at each call: the level of a logger can change while the program runs. */
function calls(
  logger: Logger,
  level: Level,
  takesFields: boolean,
  complain: (error: unknown) => void,
): Logger["debug"] {
  return (...args) => {
    try {
      const answer: unknown = logger[level](...(takesFields ? fieldsFirst(args) : args));
      if (answer instanceof Promise) answer.catch(complain);
    } catch (error) {
      complain(error);
    }
  };
}

const placeholder = /%[sdifjoOc]/;

/** `("message", error, { … })` → `({ err: error, … }, "message")`; what has another form is left as it is. */
function fieldsFirst(args: readonly unknown[]): readonly unknown[] {
  const [message, ...rest] = args;
  if (typeof message !== "string" || rest.length === 0 || placeholder.test(message)) return args;
  if (!rest.every((one) => typeof one === "object" && one !== null)) return args;
  const fields = rest.map((one) => (one instanceof Error ? { err: one } : one));
  return [Object.assign({}, ...fields), message];
}

const has = (value: object, name: string) => typeof Reflect.get(value, name) === "function";

/** pino tells its `bindings()`, bunyan has `addSerializers()`; others that make children (winston) take the message first. */
function fieldsComeFirst(logger: Logger): boolean {
  return has(logger, "child") && (has(logger, "bindings") || has(logger, "addSerializers"));
}

const isLogger = (value: unknown): value is Logger =>
  typeof value === "object" && value !== null && levels.every((level) => has(value, level));
