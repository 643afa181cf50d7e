/** A logger is code of the user, and is called in places where an exception would end the worker. */
import type { Logger } from "../define/context.js";
import { discardLog } from "./logger.js";

const levels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof levels)[number];

/** What a line of the log is about. */
export interface LogFields {
  readonly runId?: string;
  readonly workflow?: string;
  readonly step?: string | null;
  readonly attempt?: number | null;
  readonly [field: string]: unknown;
}

interface GuardedLogger {
  readonly inner: Logger;
  readonly takesFields: boolean;
  readonly onFailure: (error: unknown) => void;
  /** Of a logger that was bound to fields: what they are, and the logger without them. */
  readonly bound: { readonly fields: LogFields; readonly root: Logger } | null;
}

const guardedLoggers = new WeakMap<Logger, GuardedLogger>();

/**
 * The logger, made so that whatever it throws or rejects with is told once on the console, and otherwise passed over.
 * Other members of it (pino's `child`, for one) stay within reach of code that uses `ctx.log`.
 *
 * pino and bunyan take an object first and the message second, and drop an error that comes behind the message. For them
 * `log.warn(message, error)` is turned around, so that the same call works with every logger.
 */
export function safeLogger(logger: Logger): Logger {
  return guardedLoggers.has(logger) ? logger : guardLogger(logger, createFailureReporter(), null);
}

/** The same logger with these fields in all its lines, if it can have children; otherwise itself. */
export function boundLogger(log: Logger, fields: LogFields): Logger {
  const guarded = guardedLoggers.get(log);
  const child = (guarded?.inner as { child?: unknown } | undefined)?.child;
  if (guarded === undefined || typeof child !== "function") return log;
  try {
    const bound: unknown = Reflect.apply(child, guarded.inner, [fields]);
    if (!isLogger(bound)) return log;
    const root = guarded.bound?.root ?? log;
    return guardLogger(bound, guarded.onFailure, { fields: { ...guarded.bound?.fields, ...fields }, root });
  } catch (error) {
    guarded.onFailure(error);
    return log;
  }
}

/** Writes one line about something: loggers that take fields, or have children, get them; the others the text alone. */
export function logWithFields(log: Logger, level: LogLevel, fields: LogFields, message: string, error?: unknown): void {
  const guarded = guardedLoggers.get(log);
  // pino writes a field twice that a line repeats from its logger, and JSON with a key twice means something else to each reader.
  if (guarded?.bound != null) {
    const { root, fields: bound } = guarded.bound;
    return logWithFields(root, level, { ...bound, ...fields }, message, error);
  }
  if (guarded?.takesFields === true)
    return log[level](error === undefined ? fields : { ...fields, err: error }, message);
  // A child for each line of level debug would cost more than the line.
  const bound = level === "debug" ? log : boundLogger(log, fields);
  bound[level](message, ...(error === undefined ? [] : [error]));
}

/** Whether lines of level debug are read at all, as far as the logger tells. */
export function isDebugEnabled(log: Logger): boolean {
  if (log.debug === discardLog) return false;
  const inner = guardedLoggers.get(log)?.inner as { isLevelEnabled?: unknown } | undefined;
  if (typeof inner?.isLevelEnabled !== "function") return true;
  try {
    return Reflect.apply(inner.isLevelEnabled, inner, ["debug"]) !== false;
  } catch {
    return true;
  }
}

function guardLogger(inner: Logger, onFailure: (error: unknown) => void, bound: GuardedLogger["bound"]): Logger {
  const takesFields = takesFieldsFirst(inner);
  const guarded = Object.create(inner) as Record<LogLevel, Logger["debug"]>;
  for (const level of levels) {
    const value = inner[level] === discardLog ? discardLog : createSafeMethod(inner, level, takesFields, onFailure);
    Object.defineProperty(guarded, level, { value, writable: true, configurable: true, enumerable: true });
  }
  guardedLoggers.set(guarded, { inner, takesFields, onFailure, bound });
  return guarded;
}

function createFailureReporter(): (error: unknown) => void {
  let hasReported = false;
  return (error) => {
    if (hasReported) return;
    hasReported = true;
    try {
      console.error("The logger that Pawl was given failed; further failures of it are not told.", error);
    } catch {
      // There is no other place to tell it.
    }
  };
}

/** Looked up at each call: the level of a logger can change while the program runs. */
function createSafeMethod(
  logger: Logger,
  level: LogLevel,
  takesFields: boolean,
  onFailure: (error: unknown) => void,
): Logger["debug"] {
  return (...args) => {
    try {
      const result: unknown = logger[level](...(takesFields ? moveFieldsFirst(args) : args));
      if (result instanceof Promise) result.catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  };
}

const placeholder = /%[sdifjoOc]/;

/** `("message", error, { … })` → `({ err: error, … }, "message")`; what has another form is left as it is. */
function moveFieldsFirst(args: readonly unknown[]): readonly unknown[] {
  const [message, ...rest] = args;
  if (typeof message !== "string" || rest.length === 0 || placeholder.test(message)) return args;
  if (!rest.every((one) => typeof one === "object" && one !== null)) return args;
  const fields = rest.map((one) => (one instanceof Error ? { err: one } : one));
  return [Object.assign({}, ...fields), message];
}

const hasMethod = (value: object, name: string) => typeof Reflect.get(value, name) === "function";

/** pino tells its `bindings()`, bunyan has `addSerializers()`; others that make children (winston) take the message first. */
function takesFieldsFirst(logger: Logger): boolean {
  return hasMethod(logger, "child") && (hasMethod(logger, "bindings") || hasMethod(logger, "addSerializers"));
}

const isLogger = (value: unknown): value is Logger =>
  typeof value === "object" && value !== null && levels.every((level) => hasMethod(value, level));
