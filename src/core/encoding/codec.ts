import { PayloadTooLargeError, SerializationError } from "../errors/errors.js";
import { guarded, guardWithin } from "../errors/guarded-promise.js";
import { fieldsOf, rebuildError } from "../errors/rebuild-error.js";

/**
 * User values as JSON text. A value that is plain JSON is its own encoding. What JSON cannot say is written as
 * `{"$pawl":"Date","v":"2025-01-01T00:00:00.000Z"}`: a type from a fixed list, and its value. An object that has a key
 * `$pawl` of its own is written as `{"$pawl":"Object","v":{…}}`, so that everything comes back as it was.
 */
const TAG = "$pawl";
/** Occurs in a text exactly when some object in it has the key `$pawl`: in a string the quotes would be escaped. */
const MARKER = `"${TAG}":`;
const UNDEFINED = `{"${TAG}":"undefined"}`;

const LIMIT_BYTES = 1024 * 1024;
const DEPTH = 200;
/** A plain value up to this many times too large is still encoded, so that the error can name its exact size. */
const MEASURED = 8;

export interface EncodeOptions {
  /** Names the value in errors: `the output of step "archive"`. */
  readonly what: string;
  /** The most bytes of UTF-8 the text may have. Default 1 MiB. */
  readonly limit?: number;
  /** How many objects may be nested in each other. Default 200. */
  readonly depth?: number;
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
  const limit = options.limit ?? LIMIT_BYTES;
  const depth = options.depth ?? DEPTH;
  const text = encodePlain(value, limit, depth) ?? encodeTagged(value, options.what, limit, depth);
  // A UTF-16 unit is at most 3 bytes of UTF-8, so most texts need not be measured.
  if (text.length * 3 > limit) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limit) throw new PayloadTooLargeError({ what: options.what, bytes, limit });
  }
  return text;
}

/**
 * The value that {@link encode} made this text from.
 *
 * @throws SerializationError when the text is damaged, nested too deeply, or holds a type this version does not know
 */
export function decode(text: string, options: { readonly depth?: number } = {}): unknown {
  if (text === UNDEFINED) return undefined;
  const depth = options.depth ?? DEPTH;
  const value = parse(text);
  if (typeof value !== "object" || value === null) return value;
  if (text.includes(MARKER)) return reviveAll(value, depth);
  // Each level takes two characters, so a short text cannot be too deep.
  if (text.length > depth * 2 && isDeeper(value, depth)) throw damaged([], tooDeep(depth));
  return value;
}

// ---- Plain JSON: one walk to make sure, then the engine's own JSON.stringify ----------------------------------------

function encodePlain(value: unknown, limit: number, depth: number): string | undefined {
  if (value === undefined) return UNDEFINED; // what most steps return
  try {
    if (spend(value, limit * MEASURED, depth) >= 0)
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
function spend(value: unknown, budget: number, levels: number): number {
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
      return Array.isArray(value) ? spendArray(value, budget, levels) : spendObject(value, budget, levels);
    default:
      return -1;
  }
}

function spendArray(array: unknown[] & { toJSON?: unknown }, budget: number, levels: number): number {
  if (Object.getPrototypeOf(array) !== Array.prototype || typeof array.toJSON === "function") return -1;
  let left = budget;
  for (let index = 0; index < array.length; index++) {
    left = spend(array[index], left - 1, levels - 1);
    if (left < 0) return -1;
  }
  return left;
}

function spendObject(object: object & { toJSON?: unknown }, budget: number, levels: number): number {
  const prototype = Object.getPrototypeOf(object);
  if ((prototype !== Object.prototype && prototype !== null) || typeof object.toJSON === "function") {
    // A getter may return another one to each who asks.
    if (object instanceof Promise) guarded(object);
    return -1;
  }
  let left = budget;
  for (const key in object) {
    if (key === TAG) return -1;
    left = spend((object as Record<string, unknown>)[key], left - key.length, levels - 1);
    if (left < 0) return -1;
  }
  return left;
}

function isPlainNumber(value: number): boolean {
  return Number.isFinite(value) && (value !== 0 || 1 / value > 0);
}

// ---- Everything else: written piece by piece ------------------------------------------------------------------------

type Path = Array<string | number>;

interface Writing {
  readonly what: string;
  readonly limit: number;
  readonly depth: number;
  /** Where in the value we are, for errors. */
  readonly path: Path;
  /** The objects we are inside of, to notice cycles. */
  readonly parents: Set<object>;
  /** A lower bound for the characters written. */
  written: number;
  /** Our own error, once we have thrown one. */
  refusal?: Error;
  /** It was refused because of a promise; there may be more of them. */
  hasPromise?: boolean;
}

function encodeTagged(value: unknown, what: string, limit: number, depth: number): string {
  const w: Writing = { what, limit, depth, path: [], parents: new Set(), written: 0 };
  try {
    return write(w, value, depth);
  } catch (cause) {
    // `() => ids.map(load)` returns promises that no code awaits: the step fails, and they must not end the process.
    if (w.hasPromise === true) guardWithin(value);
    // By identity: whatever user code threw may be a proxy that throws when it is asked for its class.
    if (cause === w.refusal) throw cause;
    const path = showPath(w.path);
    throw new SerializationError(`Cannot store ${what}: reading ${path} threw an error (see cause).`, { path, cause });
  }
}

function write(w: Writing, value: unknown, levels: number): string {
  switch (typeof value) {
    case "string":
      return writeString(w, value);
    case "number":
      return count(
        w,
        isPlainNumber(value) ? `${value}` : tagged("number", Object.is(value, -0) ? '"-0"' : `"${value}"`),
      );
    case "boolean":
      return count(w, `${value}`);
    case "undefined":
      return count(w, UNDEFINED);
    case "bigint":
      return count(w, tagged("bigint", `"${value}"`));
    case "object":
      return value === null ? count(w, "null") : writeObject(w, value, levels);
    case "function":
      return refuse(w, `a function${value.name === "" ? "" : ` (${value.name})`}`);
    default:
      return refuse(w, "a symbol");
  }
}

function writeObject(w: Writing, object: object, levels: number): string {
  if (w.parents.has(object)) return refuse(w, "a reference back to an object that contains it (a cycle)");
  w.parents.add(object);
  const text = writeKnown(w, object, levels) ?? writeWithToJSON(w, object, levels);
  w.parents.delete(object);
  return text;
}

/** The types on the list. By their string tag rather than `instanceof`, which fails for values of another realm. */
function writeKnown(w: Writing, object: object, levels: number): string | undefined {
  const type = typeOf(object);
  switch (type) {
    case "Date": {
      const date = object as Date;
      return count(w, tagged("Date", Number.isNaN(date.getTime()) ? "null" : `"${date.toISOString()}"`));
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
  if (BINARY.has(type)) return tagged(type, writeBytes(w, object as ArrayBuffer | ArrayBufferView));
  if (object instanceof Promise) {
    w.hasPromise = true;
    guarded(object);
  }
  if (ArrayBuffer.isView(object) || REFUSED.has(type)) return refuse(w, `a ${type}`);
  return undefined;
}

function writeWithToJSON(w: Writing, object: object & { toJSON?: unknown; then?: unknown }, levels: number): string {
  if (typeof object.toJSON === "function") {
    const replacement: unknown = object.toJSON(String(w.path.at(-1) ?? ""));
    if (typeof replacement !== "object" || replacement === null) return write(w, replacement, levels);
    // As with JSON.stringify, the replacement's own toJSON is not asked. It may well be the object itself.
    return writeKnown(w, replacement, levels) ?? writeProperties(w, replacement, levels);
  }
  if (typeof object.then === "function") return refuse(w, "a promise (was it not awaited?)");
  return writeProperties(w, object, levels);
}

function writeProperties(w: Writing, object: object, levels: number): string {
  if (Array.isArray(object)) return writeList(w, object, levels);
  const inner = descend(w, levels);
  let text = "";
  let collides = false;
  for (const key of Object.keys(object)) {
    if (key === TAG) collides = true;
    w.path.push(key);
    const value = write(w, (object as Record<string, unknown>)[key], inner);
    text += `${text === "" ? "" : ","}${writeString(w, key)}:${value}`;
    w.path.pop();
  }
  return collides ? tagged("Object", `{${text}}`) : `{${text}}`;
}

function writeList(w: Writing, items: Iterable<unknown>, levels: number, name?: string): string {
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

function writeMap(w: Writing, map: Map<unknown, unknown>, levels: number): string {
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

function writeError(w: Writing, error: Error & { code?: unknown; errors?: unknown }, levels: number): string {
  const { stack, code, errors } = error;
  const data = fieldsOf(error);
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

function writeBytes(w: Writing, source: ArrayBuffer | ArrayBufferView): string {
  count(w, "", source.byteLength);
  const bytes = ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
  return `"${bytes.toString("base64")}"`;
}

function writeString(w: Writing, text: string): string {
  count(w, "", text.length);
  return JSON.stringify(text);
}

function tagged(type: string, json: string): string {
  return `{${MARKER}"${type}","v":${json}}`;
}

/** Pass the text on, and give up as soon as it is certain that there is too much. */
function count(w: Writing, text: string, length = text.length): string {
  w.written += length;
  if (w.written <= w.limit) return text;
  w.refusal = new PayloadTooLargeError({ what: w.what, bytes: w.written, limit: w.limit, atLeast: true });
  throw w.refusal;
}

function descend(w: Writing, levels: number): number {
  count(w, "{}");
  if (levels > 0) return levels - 1;
  return refuse(w, tooDeep(w.depth));
}

function refuse(w: Writing, problem: string): never {
  const path = showPath(w.path);
  w.refusal = new SerializationError(`Cannot store ${w.what}: ${path} is ${problem}; pass plain data instead.`, {
    path,
  });
  throw w.refusal;
}

function typeOf(object: object): string {
  if (Buffer.isBuffer(object)) return "Buffer";
  if (object instanceof Error) return "Error"; // a DOMException too, whose string tag is its own
  return Object.prototype.toString.call(object).slice("[object ".length, -1);
}

/** Without own properties to write, these would come back as `{}`. */
const REFUSED = new Set(
  (
    "Promise WeakMap WeakSet WeakRef Generator AsyncGenerator SharedArrayBuffer Headers Request Response FormData " +
    "URLSearchParams Blob File ReadableStream WritableStream AbortSignal"
  ).split(" "),
);

// ---- Reading --------------------------------------------------------------------------------------------------------

type Revived = Record<string, unknown>;

/** V8's parser does not recurse: 5,000,000 levels are read without trouble. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged([], "not JSON", cause);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, levels - 1));
  for (const key in value) if (isDeeper((value as Revived)[key], levels - 1)) return true;
  return false;
}

interface Reading {
  readonly depth: number;
  readonly path: Path;
}

function reviveAll(value: object, depth: number): unknown {
  const r: Reading = { depth, path: [] };
  try {
    return revive(r, value, depth);
  } catch (cause) {
    if (cause instanceof SerializationError) throw cause;
    throw damaged(r.path, "not a value of its type", cause);
  }
}

/** The tree is fresh from JSON.parse and ours, so it is changed in place. */
function revive(r: Reading, node: unknown, levels: number): unknown {
  if (typeof node !== "object" || node === null) return node;
  if (Object.hasOwn(node, TAG)) return reviveTagged(r, node as Revived, levels);
  return Array.isArray(node) ? reviveItems(r, node, levels) : reviveProperties(r, node as Revived, levels);
}

function reviveTagged(r: Reading, node: Revived, levels: number): unknown {
  const { [TAG]: type, v } = node;
  switch (type) {
    case "undefined":
      return undefined;
    case "number":
      return NUMBERS.has(v) ? NUMBERS.get(v) : fail(r, "not a special number");
    case "bigint":
      return typeof v === "string" && /^-?\d+$/.test(v) ? BigInt(v) : fail(r, "not a bigint");
    case "Date":
      return new Date(typeof v === "string" ? v : Number.NaN);
    case "Map":
      return new Map(reviveEntries(r, list(r, v), levels));
    case "Set":
      return new Set(reviveItems(r, list(r, v), levels));
    case "Error":
      return reviveError(r, reviveProperties(r, record(r, v), levels));
    case "RegExp":
      return new RegExp(string(r, list(r, v)[0]), string(r, list(r, v)[1]));
    case "URL":
      return new URL(string(r, v));
    case "Object":
      return reviveProperties(r, record(r, v), levels);
  }
  const make = BINARY.get(type);
  if (make === undefined) return fail(r, `of a type that this version of Pawl does not know (${type})`);
  return make(Uint8Array.from(Buffer.from(string(r, v), "base64")).buffer);
}

function reviveItems(r: Reading, items: unknown[], levels: number): unknown[] {
  const inner = levels > 0 ? levels - 1 : fail(r, tooDeep(r.depth));
  for (let index = 0; index < items.length; index++) {
    r.path.push(index);
    items[index] = revive(r, items[index], inner);
    r.path.pop();
  }
  return items;
}

function reviveEntries(r: Reading, entries: unknown[], levels: number): Array<[unknown, unknown]> {
  // The pairs belong to the Map: they are no level of their own.
  return entries.map((entry) => reviveItems(r, list(r, entry), levels) as [unknown, unknown]);
}

function reviveProperties(r: Reading, object: Revived, levels: number): Revived {
  const inner = levels > 0 ? levels - 1 : fail(r, tooDeep(r.depth));
  for (const key of Object.keys(object)) {
    const before = object[key];
    if (typeof before !== "object" || before === null) continue;
    r.path.push(key);
    const after = revive(r, before, inner);
    // Never a plain assignment: for the key __proto__ it could reach the prototype.
    if (after !== before) {
      Object.defineProperty(object, key, { value: after, enumerable: true, writable: true, configurable: true });
    }
    r.path.pop();
  }
  return object;
}

function reviveError(r: Reading, fields: Revived): Error {
  const { stack, code, errors, data } = fields;
  return rebuildError({
    name: string(r, fields.name),
    message: string(r, fields.message),
    ...(typeof stack === "string" && { stack }),
    ...((typeof code === "string" || typeof code === "number") && { code }),
    ...(Object.hasOwn(fields, "cause") && { cause: fields.cause }),
    ...(Array.isArray(errors) && { errors }),
    ...(typeof data === "object" && data !== null && { data: data as Revived }),
  });
}

const NUMBERS = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

const BINARY = new Map<unknown, (bytes: ArrayBuffer) => unknown>([
  ["ArrayBuffer", (bytes) => bytes],
  ["Buffer", (bytes) => Buffer.from(bytes)],
  ["DataView", (bytes) => new DataView(bytes)],
  ["Uint8Array", (bytes) => new Uint8Array(bytes)],
  ["Uint8ClampedArray", (bytes) => new Uint8ClampedArray(bytes)],
  ["Uint16Array", (bytes) => new Uint16Array(bytes)],
  ["Uint32Array", (bytes) => new Uint32Array(bytes)],
  ["Int8Array", (bytes) => new Int8Array(bytes)],
  ["Int16Array", (bytes) => new Int16Array(bytes)],
  ["Int32Array", (bytes) => new Int32Array(bytes)],
  ["Float32Array", (bytes) => new Float32Array(bytes)],
  ["Float64Array", (bytes) => new Float64Array(bytes)],
  ["BigInt64Array", (bytes) => new BigInt64Array(bytes)],
  ["BigUint64Array", (bytes) => new BigUint64Array(bytes)],
]);

function list(r: Reading, value: unknown): unknown[] {
  return Array.isArray(value) ? value : fail(r, "not a list");
}

function record(r: Reading, value: unknown): Revived {
  return typeof value === "object" && value !== null ? (value as Revived) : fail(r, "not an object");
}

function string(r: Reading, value: unknown): string {
  return typeof value === "string" ? value : fail(r, "not a string");
}

function fail(r: Reading, problem: string): never {
  throw damaged(r.path, problem);
}

function damaged(at: Path, problem: string, cause?: unknown): SerializationError {
  const path = showPath(at);
  return new SerializationError(`Cannot read a stored value: ${path} is ${problem}; the row may be damaged.`, {
    path,
    cause,
  });
}

function tooDeep(depth: number): string {
  return `nested more than ${depth} levels deep`;
}

/** `$.items[3].fn`; the middle of a very long path is left out. */
function showPath(path: Path): string {
  const parts = path.map((segment) => {
    if (typeof segment === "number") return `[${segment}]`;
    if (/^[\p{L}_$][\p{L}\d_$]{0,59}$/u.test(segment)) return `.${segment}`;
    return `[${JSON.stringify(segment.length > 60 ? `${segment.slice(0, 60)}…` : segment)}]`;
  });
  if (parts.length > 24) parts.splice(12, parts.length - 18, "…");
  return `$${parts.join("")}`;
}
