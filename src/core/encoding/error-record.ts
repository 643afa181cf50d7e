/** Converts thrown values to plain data that can be stored, and back. */
import { guardPromise } from "../errors/guarded-promise.js";
import { errorFieldsOf, rebuildError } from "../errors/rebuild-error.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";

/** A value that user code threw, as plain data that can always be stored. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string | number;
  readonly cause?: Failure;
  /** The first ten errors of an AggregateError. */
  readonly errors?: readonly Failure[];
  /** The thrown value itself, when it was not an Error and can be stored. */
  readonly value?: unknown;
  /** The fields of Pawl's own error classes, such as `retryAfter`. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Only in the row of a failed run: the step that threw the error. Absent if code outside of a step did. */
  readonly step?: string;
}

const NAME_BYTES = 200;
const MESSAGE_BYTES = 8 * 1024;
const STACK_BYTES = 16 * 1024;
const MAX_CAUSE_DEPTH = 5;
const MAX_ERRORS = 10;
const VALUE_DEPTH = 50;
/**
 * The limit for a failure with all its causes. JSON escapes make the text at most six times larger, which is below 1 MiB.
 */
const TOTAL_BYTES = 128 * 1024;
/** Subtracted from the limit for the keys and quotes of each nested failure, which also bounds the number of failures. */
const OVERHEAD_BYTES = 64;
const TRUNCATION_MARK = "… [cut]";

/** Converts any thrown value to a failure. It never throws, and its result can always be encoded. */
export function toFailure(thrown: unknown): Failure {
  return capture(thrown, { remainingBytes: TOTAL_BYTES, seen: new Set() }, MAX_CAUSE_DEPTH);
}

/** Converts a failure back to an error. A thrown value that was not an Error becomes the `cause` of the returned error. */
export function reviveFailure(failure: Failure): Error {
  const { name, message, stack, code, cause, errors, data } = failure;
  return rebuildError({
    name: String(name),
    message: String(message),
    stack,
    code,
    ...("value" in failure && { cause: failure.value }),
    ...(cause !== undefined && { cause: reviveInner(cause) }),
    ...(errors !== undefined && { errors: errors.map(reviveInner) }),
    data,
  });
}

function reviveInner(failure: Failure): unknown {
  return "value" in failure ? failure.value : reviveFailure(failure);
}

interface CaptureState {
  /** How many bytes of the total limit are left. */
  remainingBytes: number;
  /** The values captured so far, to detect an error that is its own cause. */
  readonly seen: Set<unknown>;
}

function capture(thrown: unknown, state: CaptureState, levels: number): Failure {
  state.seen.add(thrown);
  state.remainingBytes -= OVERHEAD_BYTES;
  return isError(thrown) ? captureError(thrown, state, levels) : captureValue(thrown, state);
}

function captureError(error: object, state: CaptureState, levels: number): Failure {
  const stack = read(error, "stack");
  const code = read(error, "code");
  const cause = read(error, "cause");
  const errors = read(error, "errors");
  const fields = tryGet(() => errorFieldsOf(error));
  const data = fields === undefined ? undefined : storedCopyOf(fields, state);
  const shouldCapture = (inner: unknown) => levels > 0 && state.remainingBytes > 0 && !state.seen.has(inner);
  return {
    name: truncate(textOr(read(error, "name"), "Error"), NAME_BYTES, state),
    message: truncate(textOr(read(error, "message"), ""), MESSAGE_BYTES, state),
    ...(typeof stack === "string" && { stack: truncate(stack, STACK_BYTES, state) }),
    ...(typeof code === "string" && { code: truncate(code, NAME_BYTES, state) }),
    ...(typeof code === "number" && { code }),
    ...(data !== undefined && { data: data.value as Record<string, unknown> }),
    ...(cause !== undefined && shouldCapture(cause) && { cause: capture(cause, state, levels - 1) }),
    ...(Array.isArray(errors) && {
      errors: firstErrorsOf(errors)
        .filter(shouldCapture)
        .map((inner) => capture(inner, state, levels - 1)),
    }),
  };
}

/** Captures a thrown value that is not an error: a string, null, or an object `{ message, code }` of a database client. */
function captureValue(thrown: unknown, state: CaptureState): Failure {
  const object = typeof thrown === "object" && thrown !== null ? thrown : {};
  const message = typeof thrown === "string" ? thrown : textOr(read(object, "message"), `${show(thrown)} was thrown`);
  const code = read(object, "code");
  const storedCopy = storedCopyOf(thrown, state);
  return {
    name: "NonError",
    message: truncate(message, MESSAGE_BYTES, state),
    ...(typeof code === "string" && { code: truncate(code, NAME_BYTES, state) }),
    ...(typeof code === "number" && { code }),
    ...(storedCopy !== undefined && { value: storedCopy.value }),
  };
}

function isError(thrown: unknown): thrown is object {
  // The string tag is checked too, because an error of another realm is not an instance of this realm's Error.
  return tryGet(() => thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]") ?? false;
}

function read(object: object, key: string): unknown {
  const value = tryGet((): unknown => Reflect.get(object, key));
  return value instanceof Promise ? guardPromise(value) : value;
}

function firstErrorsOf(errors: readonly unknown[]): unknown[] {
  return tryGet(() => errors.slice(0, MAX_ERRORS)) ?? [];
}

/** Returns a copy of the value as the store would return it; undefined when the value is too large or cannot be encoded. */
function storedCopyOf(value: unknown, state: CaptureState): { value: unknown } | undefined {
  return tryGet(() => {
    const text = encode(value, {
      label: "the thrown value",
      limitBytes: state.remainingBytes / 2,
      maxDepth: VALUE_DEPTH,
    });
    state.remainingBytes -= Buffer.byteLength(text);
    return { value: decode(text) };
  });
}

function tryGet<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {
    return undefined; // A getter, a proxy or a toJSON of the thrown value threw; the rest of the value is still recorded.
  }
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function show(thrown: unknown): string {
  if (typeof thrown === "object" && thrown !== null) return "an object";
  return typeof thrown === "function" ? "a function" : String(thrown);
}

/** Cuts the text to the limit, never in the middle of a character. */
function truncate(text: string, limit: number, state: CaptureState): string {
  const room = Math.max(0, Math.min(limit, state.remainingBytes));
  const bytes = text.length > room ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
  if (bytes <= room) {
    state.remainingBytes -= bytes;
    return text;
  }
  state.remainingBytes -= room;
  const { read } = new TextEncoder().encodeInto(
    text,
    new Uint8Array(Math.max(0, room - Buffer.byteLength(TRUNCATION_MARK))),
  );
  return text.slice(0, read) + TRUNCATION_MARK;
}
