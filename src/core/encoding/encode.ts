/**
 * Encodes a value as text. A value of plain JSON, which most values are, is encoded by JSON.stringify; any other value is
 * written part by part.
 */

import { PayloadTooLargeError, SerializationError } from "../errors/errors.js";
import { guardPromise, guardPromisesWithin } from "../errors/guarded-promise.js";
import { errorFieldsOf } from "../errors/rebuild-error.js";
import {
  BINARY_TYPES,
  ENCODED_UNDEFINED,
  formatPath,
  MARKER,
  MAX_DEPTH,
  type Path,
  TAG,
  tooDeepMessage,
} from "./tagged-json.js";

export const DEFAULT_LIMIT_BYTES = 1024 * 1024;
/** A plain value that exceeds the limit up to this factor is still encoded, so that the error can name its exact size. */
const MEASURABLE_FACTOR = 8;

export interface EncodeOptions {
  /** Names the value in errors, such as `the output of step "archive"`. */
  readonly label: string;
  /** The largest size of the text in bytes of UTF-8. Default 1 MiB. */
  readonly limitBytes?: number;
  /** How many objects may be nested in each other. Default 200. */
  readonly maxDepth?: number;
}

/**
 * Encodes a value as text.
 *
 * Besides the values of JSON, these can be restored: undefined, NaN, ±Infinity, -0, bigint, Date, Map, Set, Error, RegExp,
 * URL, ArrayBuffer, typed arrays and Buffer. An instance of another class is encoded as the result of its `toJSON`, or else
 * as a plain object of its own properties.
 *
 * @throws SerializationError for values that cannot be restored: functions, symbols, promises, cycles
 * @throws PayloadTooLargeError when the text exceeds the limit
 */
export function encode(value: unknown, options: EncodeOptions): string {
  const limitBytes = options.limitBytes ?? DEFAULT_LIMIT_BYTES;
  const maxDepth = options.maxDepth ?? MAX_DEPTH;
  const text = encodePlain(value, limitBytes, maxDepth) ?? encodeTagged(value, options.label, limitBytes, maxDepth);
  // A UTF-16 unit is at most 3 bytes of UTF-8, so the bytes of a short text need not be counted.
  if (text.length * 3 > limitBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limitBytes) throw new PayloadTooLargeError({ what: options.label, bytes, limit: limitBytes });
  }
  return text;
}

// ---- Plain JSON: checked first, then encoded by JSON.stringify ------------------------------------------------------

function encodePlain(value: unknown, limit: number, depth: number): string | undefined {
  if (value === undefined) return ENCODED_UNDEFINED; // Checked first, because most steps return undefined.
  try {
    if (measurePlain(value, limit * MEASURABLE_FACTOR, depth) >= 0)
      return typeof value === "number" ? `${value}` : JSON.stringify(value);
  } catch {
    // A getter or a proxy threw. `encodeTagged` then gets the same error, and reports its path.
  }
  return undefined;
}

/**
 * Subtracts the length of a plain JSON value from a budget of characters, and returns the rest. The result is negative when
 * the value is not plain, nested too deeply (perhaps a cycle), or larger than the budget. The budget also stops values that
 * share parts so often that their text would be exponentially long.
 */
function measurePlain(value: unknown, budget: number, levels: number): number {
  switch (typeof value) {
    case "string":
      return budget - value.length;
    case "number":
      return isPlainNumber(value) ? budget - 1 : -1;
    case "boolean":
      return budget - 1;
    case "object":
      if (value === null) return budget - 1;
      if (levels === 0) return -1;
      return Array.isArray(value)
        ? measurePlainArray(value, budget, levels)
        : measurePlainObject(value, budget, levels);
    default:
      return -1;
  }
}

function measurePlainArray(array: unknown[] & { toJSON?: unknown }, budget: number, levels: number): number {
  if (Object.getPrototypeOf(array) !== Array.prototype || typeof array.toJSON === "function") return -1;
  let remaining = budget;
  for (let index = 0; index < array.length; index++) {
    remaining = measurePlain(array[index], remaining - 1, levels - 1);
    if (remaining < 0) return -1;
  }
  return remaining;
}

function measurePlainObject(object: object & { toJSON?: unknown }, budget: number, levels: number): number {
  const prototype = Object.getPrototypeOf(object);
  if ((prototype !== Object.prototype && prototype !== null) || typeof object.toJSON === "function") {
    // A getter may return a new promise on each read. `encodeTagged` would not meet this promise, so it is guarded here.
    if (object instanceof Promise) guardPromise(object);
    return -1;
  }
  let remaining = budget;
  for (const key in object) {
    if (key === TAG) return -1;
    remaining = measurePlain((object as Record<string, unknown>)[key], remaining - key.length, levels - 1);
    if (remaining < 0) return -1;
  }
  return remaining;
}

function isPlainNumber(value: number): boolean {
  return Number.isFinite(value) && (value !== 0 || 1 / value > 0);
}

// ---- Other values: written part by part -----------------------------------------------------------------------------

interface EncodeState {
  readonly label: string;
  readonly limitBytes: number;
  readonly maxDepth: number;
  /** The place in the value that is being written, for errors. */
  readonly path: Path;
  /** The objects that contain the value at `path`. A value that is one of them is a cycle. */
  readonly parents: Set<object>;
  /** A lower bound for the number of characters written. */
  written: number;
  /** The error that the encoder itself has thrown. Any other error was thrown by user code, such as a getter. */
  ownError?: Error;
  /** The value was refused because it contains a promise. It may contain further promises, which must be guarded. */
  hasPromise?: boolean;
}

function encodeTagged(value: unknown, label: string, limitBytes: number, maxDepth: number): string {
  const state: EncodeState = { label, limitBytes, maxDepth, path: [], parents: new Set(), written: 0 };
  try {
    return write(state, value, maxDepth);
  } catch (cause) {
    // A body such as `() => ids.map(load)` returns promises that no code awaits. The step fails, but the rejections of
    // these promises must not end the process.
    if (state.hasPromise === true) guardPromisesWithin(value);
    // The errors are compared by identity, because user code may have thrown a proxy for which `instanceof` throws.
    if (cause === state.ownError) throw cause;
    const path = formatPath(state.path);
    throw new SerializationError(`Cannot store ${label}: reading ${path} threw an error (see cause).`, { path, cause });
  }
}

function write(state: EncodeState, value: unknown, levels: number): string {
  switch (typeof value) {
    case "string":
      return writeString(state, value);
    case "number":
      return addWritten(
        state,
        isPlainNumber(value) ? `${value}` : tagged("number", Object.is(value, -0) ? '"-0"' : `"${value}"`),
      );
    case "boolean":
      return addWritten(state, `${value}`);
    case "undefined":
      return addWritten(state, ENCODED_UNDEFINED);
    case "bigint":
      return addWritten(state, tagged("bigint", `"${value}"`));
    case "object":
      return value === null ? addWritten(state, "null") : writeObject(state, value, levels);
    case "function":
      return refuse(state, `a function${value.name === "" ? "" : ` (${value.name})`}`);
    default:
      return refuse(state, "a symbol");
  }
}

function writeObject(state: EncodeState, object: object, levels: number): string {
  if (state.parents.has(object)) return refuse(state, "a reference back to an object that contains it (a cycle)");
  state.parents.add(object);
  const text = writeKnown(state, object, levels) ?? writeWithToJSON(state, object, levels);
  state.parents.delete(object);
  return text;
}

/** Writes the built-in types. They are recognised by string tag, because `instanceof` fails for values of another realm. */
function writeKnown(state: EncodeState, object: object, levels: number): string | undefined {
  const type = typeOf(object);
  switch (type) {
    case "Date": {
      const date = object as Date;
      return addWritten(state, tagged("Date", Number.isNaN(date.getTime()) ? "null" : `"${date.toISOString()}"`));
    }
    case "Map":
      return tagged("Map", writeMap(state, object as Map<unknown, unknown>, levels));
    case "Set":
      return tagged("Set", writeList(state, object as Set<unknown>, levels, "values"));
    case "Error":
      return tagged("Error", writeError(state, object as Error, levels));
    case "RegExp":
      return tagged("RegExp", writeList(state, [(object as RegExp).source, (object as RegExp).flags], levels));
    case "URL":
      return tagged("URL", writeString(state, (object as URL).href));
    case "Number":
    case "String":
    case "Boolean":
    case "BigInt":
      return write(state, (object as { valueOf(): unknown }).valueOf(), levels);
  }
  if (BINARY_TYPES.has(type)) return tagged(type, writeBytes(state, object as ArrayBuffer | ArrayBufferView));
  if (object instanceof Promise) {
    state.hasPromise = true;
    guardPromise(object);
  }
  if (ArrayBuffer.isView(object) || UNSTORABLE_TYPES.has(type)) return refuse(state, `a ${type}`);
  return undefined;
}

function writeWithToJSON(
  state: EncodeState,
  object: object & { toJSON?: unknown; then?: unknown },
  levels: number,
): string {
  if (typeof object.toJSON === "function") {
    const replacement: unknown = object.toJSON(String(state.path.at(-1) ?? ""));
    if (typeof replacement !== "object" || replacement === null) return write(state, replacement, levels);
    // As in JSON.stringify, the `toJSON` of the replacement is not called. The replacement may be the object itself.
    return writeKnown(state, replacement, levels) ?? writeProperties(state, replacement, levels);
  }
  if (typeof object.then === "function") return refuse(state, "a promise (was it not awaited?)");
  return writeProperties(state, object, levels);
}

function writeProperties(state: EncodeState, object: object, levels: number): string {
  if (Array.isArray(object)) return writeList(state, object, levels);
  const innerLevels = descend(state, levels);
  let text = "";
  let hasTagKey = false;
  for (const key of Object.keys(object)) {
    if (key === TAG) hasTagKey = true;
    state.path.push(key);
    const value = write(state, (object as Record<string, unknown>)[key], innerLevels);
    text += `${text === "" ? "" : ","}${writeString(state, key)}:${value}`;
    state.path.pop();
  }
  return hasTagKey ? tagged("Object", `{${text}}`) : `{${text}}`;
}

function writeList(state: EncodeState, items: Iterable<unknown>, levels: number, name?: string): string {
  const innerLevels = descend(state, levels);
  if (name !== undefined) state.path.push(name);
  let text = "";
  let index = 0;
  for (const item of items) {
    state.path.push(index);
    text += `${index === 0 ? "" : ","}${write(state, item, innerLevels)}`;
    state.path.pop();
    index++;
  }
  if (name !== undefined) state.path.pop();
  return `[${text}]`;
}

function writeMap(state: EncodeState, map: Map<unknown, unknown>, levels: number): string {
  const innerLevels = descend(state, levels);
  const entries: string[] = [];
  state.path.push("entries");
  for (const [key, value] of map) {
    state.path.push(entries.length, 0);
    const keyText = write(state, key, innerLevels);
    state.path.splice(-1, 1, 1);
    entries.push(`[${keyText},${write(state, value, innerLevels)}]`);
    state.path.splice(-2);
  }
  state.path.pop();
  return `[${entries.join()}]`;
}

function writeError(state: EncodeState, error: Error & { code?: unknown; errors?: unknown }, levels: number): string {
  const { stack, code, errors } = error;
  const data = errorFieldsOf(error);
  return writeProperties(
    state,
    {
      name: String(error.name),
      message: String(error.message),
      ...(typeof stack === "string" && { stack }),
      ...((typeof code === "string" || typeof code === "number") && { code }),
      ...("cause" in error && { cause: error.cause }),
      ...(Array.isArray(errors) && { errors }),
      ...(data !== undefined && { data }),
    },
    levels,
  );
}

function writeBytes(state: EncodeState, source: ArrayBuffer | ArrayBufferView): string {
  addWritten(state, "", source.byteLength);
  const bytes = ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
  return `"${bytes.toString("base64")}"`;
}

function writeString(state: EncodeState, text: string): string {
  addWritten(state, "", text.length);
  return JSON.stringify(text);
}

function tagged(type: string, json: string): string {
  return `{${MARKER}"${type}","v":${json}}`;
}

/** Adds the length to `written` and returns the text. Throws as soon as the whole text is certain to exceed the limit. */
function addWritten(state: EncodeState, text: string, length = text.length): string {
  state.written += length;
  if (state.written <= state.limitBytes) return text;
  state.ownError = new PayloadTooLargeError({
    what: state.label,
    bytes: state.written,
    limit: state.limitBytes,
    atLeast: true,
  });
  throw state.ownError;
}

function descend(state: EncodeState, levels: number): number {
  addWritten(state, "{}");
  if (levels > 0) return levels - 1;
  return refuse(state, tooDeepMessage(state.maxDepth));
}

function refuse(state: EncodeState, problem: string): never {
  const path = formatPath(state.path);
  state.ownError = new SerializationError(
    `Cannot store ${state.label}: ${path} is ${problem}; pass plain data instead.`,
    {
      path,
    },
  );
  throw state.ownError;
}

function typeOf(object: object): string {
  if (Buffer.isBuffer(object)) return "Buffer";
  if (object instanceof Error) return "Error"; // The string tag of a DOMException would be "DOMException".
  return Object.prototype.toString.call(object).slice("[object ".length, -1);
}

/** Types that are refused, because their instances have no own properties and would be restored as `{}`. */
const UNSTORABLE_TYPES = new Set(
  (
    "Promise WeakMap WeakSet WeakRef Generator AsyncGenerator SharedArrayBuffer Headers Request Response FormData " +
    "URLSearchParams Blob File ReadableStream WritableStream AbortSignal"
  ).split(" "),
);
