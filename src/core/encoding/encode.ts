/** From a value to its text. Most values are plain JSON and are left to the engine; the others are written piece by piece. */

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

const DEFAULT_LIMIT_BYTES = 1024 * 1024;
/** A plain value up to this many times too large is still encoded, so that the error can name its exact size. */
const MEASURABLE_FACTOR = 8;

export interface EncodeOptions {
  /** Names the value in errors: `the output of step "archive"`. */
  readonly label: string;
  /** The most bytes of UTF-8 the text may have. Default 1 MiB. */
  readonly limitBytes?: number;
  /** How many objects may be nested in each other. Default 200. */
  readonly maxDepth?: number;
}

/**
 * The text for a value.
 *
 * Beyond JSON it keeps undefined, NaN, ±Infinity, -0, bigint, Date, Map, Set, Error, RegExp, URL, ArrayBuffer, typed
 * arrays and Buffer. An instance of a class becomes what its `toJSON` returns, or a plain object of its own properties.
 *
 * @throws SerializationError for what cannot come back: functions, symbols, promises, cycles
 * @throws PayloadTooLargeError
 */
export function encode(value: unknown, options: EncodeOptions): string {
  const limitBytes = options.limitBytes ?? DEFAULT_LIMIT_BYTES;
  const maxDepth = options.maxDepth ?? MAX_DEPTH;
  const text = encodePlain(value, limitBytes, maxDepth) ?? encodeTagged(value, options.label, limitBytes, maxDepth);
  // A UTF-16 unit is at most 3 bytes of UTF-8, so most texts need not be measured.
  if (text.length * 3 > limitBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limitBytes) throw new PayloadTooLargeError({ what: options.label, bytes, limit: limitBytes });
  }
  return text;
}

// ---- Plain JSON: one walk to make sure, then the engine's own JSON.stringify ----------------------------------------

function encodePlain(value: unknown, limit: number, depth: number): string | undefined {
  if (value === undefined) return ENCODED_UNDEFINED; // what most steps return
  try {
    if (measurePlain(value, limit * MEASURABLE_FACTOR, depth) >= 0)
      return typeof value === "number" ? `${value}` : JSON.stringify(value);
  } catch {
    // A getter or a proxy threw. The other way finds it again, and knows where it is.
  }
  return undefined;
}

/**
 * What is left of a budget of characters after a value that is plain JSON; negative when it is not plain, nested too
 * deeply (perhaps a cycle), or larger than the budget. The budget also stops values that share their parts so often
 * that their text would be exponentially long.
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
    // A getter may return another one to each who asks.
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

// ---- Everything else: written piece by piece ------------------------------------------------------------------------

interface EncodeState {
  readonly label: string;
  readonly limitBytes: number;
  readonly maxDepth: number;
  /** Where in the value we are, for errors. */
  readonly path: Path;
  /** The objects we are inside of, to notice cycles. */
  readonly parents: Set<object>;
  /** A lower bound for the characters written. */
  written: number;
  /** Our own error, once we have thrown one. */
  ownError?: Error;
  /** It was refused because of a promise; there may be more of them. */
  hasPromise?: boolean;
}

function encodeTagged(value: unknown, label: string, limitBytes: number, maxDepth: number): string {
  const w: EncodeState = { label, limitBytes, maxDepth, path: [], parents: new Set(), written: 0 };
  try {
    return write(w, value, maxDepth);
  } catch (cause) {
    // `() => ids.map(load)` returns promises that no code awaits: the step fails, and they must not end the process.
    if (w.hasPromise === true) guardPromisesWithin(value);
    // By identity: whatever user code threw may be a proxy that throws when it is asked for its class.
    if (cause === w.ownError) throw cause;
    const path = formatPath(w.path);
    throw new SerializationError(`Cannot store ${label}: reading ${path} threw an error (see cause).`, { path, cause });
  }
}

function write(w: EncodeState, value: unknown, levels: number): string {
  switch (typeof value) {
    case "string":
      return writeString(w, value);
    case "number":
      return addWritten(
        w,
        isPlainNumber(value) ? `${value}` : tagged("number", Object.is(value, -0) ? '"-0"' : `"${value}"`),
      );
    case "boolean":
      return addWritten(w, `${value}`);
    case "undefined":
      return addWritten(w, ENCODED_UNDEFINED);
    case "bigint":
      return addWritten(w, tagged("bigint", `"${value}"`));
    case "object":
      return value === null ? addWritten(w, "null") : writeObject(w, value, levels);
    case "function":
      return refuse(w, `a function${value.name === "" ? "" : ` (${value.name})`}`);
    default:
      return refuse(w, "a symbol");
  }
}

function writeObject(w: EncodeState, object: object, levels: number): string {
  if (w.parents.has(object)) return refuse(w, "a reference back to an object that contains it (a cycle)");
  w.parents.add(object);
  const text = writeKnown(w, object, levels) ?? writeWithToJSON(w, object, levels);
  w.parents.delete(object);
  return text;
}

/** The types on the list. By their string tag rather than `instanceof`, which fails for values of another realm. */
function writeKnown(w: EncodeState, object: object, levels: number): string | undefined {
  const type = typeOf(object);
  switch (type) {
    case "Date": {
      const date = object as Date;
      return addWritten(w, tagged("Date", Number.isNaN(date.getTime()) ? "null" : `"${date.toISOString()}"`));
    }
    case "Map":
      return tagged("Map", writeMap(w, object as Map<unknown, unknown>, levels));
    case "Set":
      return tagged("Set", writeList(w, object as Set<unknown>, levels, "values"));
    case "Error":
      return tagged("Error", writeError(w, object as Error, levels));
    case "RegExp":
      return tagged("RegExp", writeList(w, [(object as RegExp).source, (object as RegExp).flags], levels));
    case "URL":
      return tagged("URL", writeString(w, (object as URL).href));
    case "Number":
    case "String":
    case "Boolean":
    case "BigInt":
      return write(w, (object as { valueOf(): unknown }).valueOf(), levels);
  }
  if (BINARY_TYPES.has(type)) return tagged(type, writeBytes(w, object as ArrayBuffer | ArrayBufferView));
  if (object instanceof Promise) {
    w.hasPromise = true;
    guardPromise(object);
  }
  if (ArrayBuffer.isView(object) || UNSTORABLE_TYPES.has(type)) return refuse(w, `a ${type}`);
  return undefined;
}

function writeWithToJSON(
  w: EncodeState,
  object: object & { toJSON?: unknown; then?: unknown },
  levels: number,
): string {
  if (typeof object.toJSON === "function") {
    const replacement: unknown = object.toJSON(String(w.path.at(-1) ?? ""));
    if (typeof replacement !== "object" || replacement === null) return write(w, replacement, levels);
    // As with JSON.stringify, the replacement's own toJSON is not asked. It may well be the object itself.
    return writeKnown(w, replacement, levels) ?? writeProperties(w, replacement, levels);
  }
  if (typeof object.then === "function") return refuse(w, "a promise (was it not awaited?)");
  return writeProperties(w, object, levels);
}

function writeProperties(w: EncodeState, object: object, levels: number): string {
  if (Array.isArray(object)) return writeList(w, object, levels);
  const inner = descend(w, levels);
  let text = "";
  let hasTagKey = false;
  for (const key of Object.keys(object)) {
    if (key === TAG) hasTagKey = true;
    w.path.push(key);
    const value = write(w, (object as Record<string, unknown>)[key], inner);
    text += `${text === "" ? "" : ","}${writeString(w, key)}:${value}`;
    w.path.pop();
  }
  return hasTagKey ? tagged("Object", `{${text}}`) : `{${text}}`;
}

function writeList(w: EncodeState, items: Iterable<unknown>, levels: number, name?: string): string {
  const inner = descend(w, levels);
  if (name !== undefined) w.path.push(name);
  let text = "";
  let index = 0;
  for (const item of items) {
    w.path.push(index);
    text += `${index === 0 ? "" : ","}${write(w, item, inner)}`;
    w.path.pop();
    index++;
  }
  if (name !== undefined) w.path.pop();
  return `[${text}]`;
}

function writeMap(w: EncodeState, map: Map<unknown, unknown>, levels: number): string {
  const inner = descend(w, levels);
  const entries: string[] = [];
  w.path.push("entries");
  for (const [key, value] of map) {
    w.path.push(entries.length, 0);
    const keyText = write(w, key, inner);
    w.path.splice(-1, 1, 1);
    entries.push(`[${keyText},${write(w, value, inner)}]`);
    w.path.splice(-2);
  }
  w.path.pop();
  return `[${entries.join()}]`;
}

function writeError(w: EncodeState, error: Error & { code?: unknown; errors?: unknown }, levels: number): string {
  const { stack, code, errors } = error;
  const data = errorFieldsOf(error);
  return writeProperties(
    w,
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

function writeBytes(w: EncodeState, source: ArrayBuffer | ArrayBufferView): string {
  addWritten(w, "", source.byteLength);
  const bytes = ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
  return `"${bytes.toString("base64")}"`;
}

function writeString(w: EncodeState, text: string): string {
  addWritten(w, "", text.length);
  return JSON.stringify(text);
}

function tagged(type: string, json: string): string {
  return `{${MARKER}"${type}","v":${json}}`;
}

/** Pass the text on, and give up as soon as it is certain that there is too much. */
function addWritten(w: EncodeState, text: string, length = text.length): string {
  w.written += length;
  if (w.written <= w.limitBytes) return text;
  w.ownError = new PayloadTooLargeError({ what: w.label, bytes: w.written, limit: w.limitBytes, atLeast: true });
  throw w.ownError;
}

function descend(w: EncodeState, levels: number): number {
  addWritten(w, "{}");
  if (levels > 0) return levels - 1;
  return refuse(w, tooDeepMessage(w.maxDepth));
}

function refuse(w: EncodeState, problem: string): never {
  const path = formatPath(w.path);
  w.ownError = new SerializationError(`Cannot store ${w.label}: ${path} is ${problem}; pass plain data instead.`, {
    path,
  });
  throw w.ownError;
}

function typeOf(object: object): string {
  if (Buffer.isBuffer(object)) return "Buffer";
  if (object instanceof Error) return "Error"; // a DOMException too, whose string tag is its own
  return Object.prototype.toString.call(object).slice("[object ".length, -1);
}

/** Without own properties to write, these would come back as `{}`. */
const UNSTORABLE_TYPES = new Set(
  (
    "Promise WeakMap WeakSet WeakRef Generator AsyncGenerator SharedArrayBuffer Headers Request Response FormData " +
    "URLSearchParams Blob File ReadableStream WritableStream AbortSignal"
  ).split(" "),
);
