import { guardPromise } from "../errors/guarded-promise.js";
import { errorFieldsOf, rebuildError } from "../errors/rebuild-error.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";

/** Whatever user code threw, as plain data that can always be stored. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string | number;
  readonly cause?: Failure;
  /** The errors of an AggregateError, the first ten. */
  readonly errors?: readonly Failure[];
  /** What was thrown, when it was not an Error and can be stored. */
  readonly value?: unknown;
  /** The fields of Pawl's own errors, such as `retryAfter`. */
  readonly data?: Readonly<Record<string, unknown>>;
}

const NAME_BYTES = 200;
const MESSAGE_BYTES = 8 * 1024;
const STACK_BYTES = 16 * 1024;
const MAX_CAUSE_DEPTH = 5;
const MAX_ERRORS = 10;
const VALUE_DEPTH = 50;
/** For everything in a failure together. Escaped as JSON it grows sixfold at worst, and stays below 1 MiB. */
const TOTAL_BYTES = 128 * 1024;
/** For the keys and quotes of each failure, so that their number is bounded too. */
const OVERHEAD_BYTES = 64;
const TRUNCATION_MARK = "… [cut]";

/** A failure from anything that can be thrown. It never throws itself, and what it returns can always be encoded. */
export function toFailure(thrown: unknown): Failure {
  return capture(thrown, { remainingBytes: TOTAL_BYTES, seen: new Set() }, MAX_CAUSE_DEPTH);
}

/** The error that a failure was made from. What was thrown without being an Error is the `cause` of a new one. */
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
  /** Bytes left of the total. */
  remainingBytes: number;
  /** To notice an error that is its own cause. */
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

/** `throw "boom"`, `throw null`, or an object like `{ message, code }`, which many database clients reject with. */
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
  // By its string tag too: an error of another realm is not an instance of our Error.
  return tryGet(() => thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]") ?? false;
}

function read(object: object, key: string): unknown {
  const value = tryGet((): unknown => Reflect.get(object, key));
  return value instanceof Promise ? guardPromise(value) : value;
}

function firstErrorsOf(errors: readonly unknown[]): unknown[] {
  return tryGet(() => errors.slice(0, MAX_ERRORS)) ?? [];
}

/** A copy of the value as the store would return it, if there is room for it and it can be encoded at all. */
function storedCopyOf(value: unknown, state: CaptureState): { value: unknown } | undefined {
  return tryGet(() => {
    const text = encode(value, {
      label: "what was thrown",
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
    return undefined; // a getter, a proxy or a toJSON of the thrown value: the rest of it is still worth keeping
  }
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function show(thrown: unknown): string {
  if (typeof thrown === "object" && thrown !== null) return "an object";
  return typeof thrown === "function" ? "a function" : String(thrown);
}

/** As much of the text as fits, never half a character. */
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
