/** From a text back to its value. */

import { SerializationError } from "../errors/errors.js";
import { rebuildError } from "../errors/rebuild-error.js";
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

/**
 * The value that `encode` made this text from.
 *
 * @throws SerializationError when the text is damaged, nested too deeply, or holds a type this version does not know
 */
export function decode(text: string, options: { readonly depth?: number } = {}): unknown {
  if (text === ENCODED_UNDEFINED) return undefined;
  const depth = options.depth ?? MAX_DEPTH;
  const value = parse(text);
  if (typeof value !== "object" || value === null) return value;
  if (text.includes(MARKER)) return reviveAll(value, depth);
  // Each level takes two characters, so a short text cannot be too deep.
  if (text.length > depth * 2 && isDeeper(value, depth)) throw damagedValueError([], tooDeepMessage(depth));
  return value;
}

type JsonObject = Record<string, unknown>;

/** V8's parser does not recurse: 5,000,000 levels are read without trouble. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damagedValueError([], "not JSON", cause);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, levels - 1));
  for (const key in value) if (isDeeper((value as JsonObject)[key], levels - 1)) return true;
  return false;
}

interface DecodeState {
  readonly depth: number;
  readonly path: Path;
}

function reviveAll(value: object, depth: number): unknown {
  const r: DecodeState = { depth, path: [] };
  try {
    return revive(r, value, depth);
  } catch (cause) {
    if (cause instanceof SerializationError) throw cause;
    throw damagedValueError(r.path, "not a value of its type", cause);
  }
}

/** The tree is fresh from JSON.parse and ours, so it is changed in place. */
function revive(r: DecodeState, node: unknown, levels: number): unknown {
  if (typeof node !== "object" || node === null) return node;
  if (Object.hasOwn(node, TAG)) return reviveTagged(r, node as JsonObject, levels);
  return Array.isArray(node) ? reviveItems(r, node, levels) : reviveProperties(r, node as JsonObject, levels);
}

function reviveTagged(r: DecodeState, node: JsonObject, levels: number): unknown {
  const { [TAG]: type, v } = node;
  switch (type) {
    case "undefined":
      return undefined;
    case "number":
      return SPECIAL_NUMBERS.has(v) ? SPECIAL_NUMBERS.get(v) : fail(r, "not a special number");
    case "bigint":
      return typeof v === "string" && /^-?\d+$/.test(v) ? BigInt(v) : fail(r, "not a bigint");
    case "Date":
      return new Date(typeof v === "string" ? v : Number.NaN);
    case "Map":
      return new Map(reviveEntries(r, expectList(r, v), levels));
    case "Set":
      return new Set(reviveItems(r, expectList(r, v), levels));
    case "Error":
      return reviveError(r, reviveProperties(r, expectObject(r, v), levels));
    case "RegExp":
      return new RegExp(expectString(r, expectList(r, v)[0]), expectString(r, expectList(r, v)[1]));
    case "URL":
      return new URL(expectString(r, v));
    case "Object":
      return reviveProperties(r, expectObject(r, v), levels);
  }
  const make = BINARY_TYPES.get(type);
  if (make === undefined) return fail(r, `of a type that this version of Pawl does not know (${type})`);
  return make(Uint8Array.from(Buffer.from(expectString(r, v), "base64")).buffer);
}

function reviveItems(r: DecodeState, items: unknown[], levels: number): unknown[] {
  const inner = levels > 0 ? levels - 1 : fail(r, tooDeepMessage(r.depth));
  for (let index = 0; index < items.length; index++) {
    r.path.push(index);
    items[index] = revive(r, items[index], inner);
    r.path.pop();
  }
  return items;
}

function reviveEntries(r: DecodeState, entries: unknown[], levels: number): Array<[unknown, unknown]> {
  // The pairs belong to the Map: they are no level of their own.
  return entries.map((entry) => reviveItems(r, expectList(r, entry), levels) as [unknown, unknown]);
}

function reviveProperties(r: DecodeState, object: JsonObject, levels: number): JsonObject {
  const inner = levels > 0 ? levels - 1 : fail(r, tooDeepMessage(r.depth));
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

function reviveError(r: DecodeState, fields: JsonObject): Error {
  const { stack, code, errors, data } = fields;
  return rebuildError({
    name: expectString(r, fields.name),
    message: expectString(r, fields.message),
    ...(typeof stack === "string" && { stack }),
    ...((typeof code === "string" || typeof code === "number") && { code }),
    ...(Object.hasOwn(fields, "cause") && { cause: fields.cause }),
    ...(Array.isArray(errors) && { errors }),
    ...(typeof data === "object" && data !== null && { data: data as JsonObject }),
  });
}

const SPECIAL_NUMBERS = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

function expectList(r: DecodeState, value: unknown): unknown[] {
  return Array.isArray(value) ? value : fail(r, "not a list");
}

function expectObject(r: DecodeState, value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : fail(r, "not an object");
}

function expectString(r: DecodeState, value: unknown): string {
  return typeof value === "string" ? value : fail(r, "not a string");
}

function fail(r: DecodeState, problem: string): never {
  throw damagedValueError(r.path, problem);
}

function damagedValueError(valuePath: Path, problem: string, cause?: unknown): SerializationError {
  const path = formatPath(valuePath);
  return new SerializationError(`Cannot read a stored value: ${path} is ${problem}; the row may be damaged.`, {
    path,
    cause,
  });
}
