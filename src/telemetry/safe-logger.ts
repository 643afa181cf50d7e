/** Guards the user's logger: Pawl calls it in places where an exception would end the worker. */
import type { Logger } from "../define/context.js";
import { discardLog } from "./logger.js";

const levels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof levels)[number];

/** The structured fields of a log line. */
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
  /** The fields that the logger adds to every line, and the logger without them; null if it adds none. */
  readonly bound: { readonly fields: LogFields; readonly root: Logger } | null;
}

const guardedLoggers = new WeakMap<Logger, GuardedLogger>();

/**
 * Returns a guarded logger, which prints the first error that the user's logger throws or rejects with on the console,
 * and ignores later ones. Code that uses `ctx.log` can still use the other members of the user's logger, such as pino's
 * `child`.
 *
 * pino and bunyan take an object first and the message second, and drop an error that follows the message. For them
 * `log.warn(message, error)` is reordered, so that the same call works with every logger.
 */
export function safeLogger(logger: Logger): Logger {
  return guardedLoggers.has(logger) ? logger : guardLogger(logger, createFailureReporter(), null);
}

/**
 * Returns a child of the logger with these fields in all its lines, or the logger itself if it cannot have children.
 */
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

/** Writes one line with fields. A logger that takes fields or has children gets them; any other gets the text alone. */
export function logWithFields(log: Logger, level: LogLevel, fields: LogFields, message: string, error?: unknown): void {
  const guarded = guardedLoggers.get(log);
  // If a field is in the line and in its logger, pino writes it twice, and readers of JSON treat duplicate keys
  // differently.
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

/** Whether the logger writes lines of level debug; true if the logger has no method that says so. */
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
      console.error("The logger that Pawl was given failed; further failures of it are not printed.", error);
    } catch {
      // There is no other place to report the failure to.
    }
  };
}

/** Looks the method up at each call, because some loggers replace it when their level changes. */
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

/** `("message", error, { … })` → `({ err: error, … }, "message")`; arguments of another form are returned unchanged. */
function moveFieldsFirst(args: readonly unknown[]): readonly unknown[] {
  const [message, ...rest] = args;
  if (typeof message !== "string" || rest.length === 0 || placeholder.test(message)) return args;
  if (!rest.every((arg) => typeof arg === "object" && arg !== null)) return args;
  const fields = rest.map((arg) => (arg instanceof Error ? { err: arg } : arg));
  return [Object.assign({}, ...fields), message];
}

const hasMethod = (value: object, name: string) => typeof Reflect.get(value, name) === "function";

/** pino has `bindings()`, bunyan has `addSerializers()`; other loggers with children (winston) take the message first. */
function takesFieldsFirst(logger: Logger): boolean {
  return hasMethod(logger, "child") && (hasMethod(logger, "bindings") || hasMethod(logger, "addSerializers"));
}

const isLogger = (value: unknown): value is Logger =>
  typeof value === "object" && value !== null && levels.every((level) => hasMethod(value, level));
