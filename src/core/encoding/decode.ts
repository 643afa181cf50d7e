/** Decodes a stored text to the value that was encoded. */

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
 * Decodes a text that `encode` returned.
 *
 * @throws SerializationError when the text is damaged, nested too deeply, or contains a type that this version does not
 * know
 */
export function decode(text: string, options: { readonly depth?: number } = {}): unknown {
  if (text === ENCODED_UNDEFINED) return undefined;
  const depth = options.depth ?? MAX_DEPTH;
  const value = parse(text);
  if (typeof value !== "object" || value === null) return value;
  if (text.includes(MARKER)) return reviveAll(value, depth);
  // Each level of nesting takes two characters, so a short text cannot be nested too deeply.
  if (text.length > depth * 2 && isDeeper(value, depth)) throw damagedValueError([], tooDeepMessage(depth));
  return value;
}

type JsonObject = Record<string, unknown>;

/** The depth need not be checked before the parse, because V8's parser does not recurse: it parses 5,000,000 levels. */
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
  const state: DecodeState = { depth, path: [] };
  try {
    return revive(state, value, depth);
  } catch (cause) {
    if (cause instanceof SerializationError) throw cause;
    throw damagedValueError(state.path, "not a value of its type", cause);
  }
}

/** Replaces tagged objects by their values. The tree is changed in place, because only `decode` has a reference to it. */
function revive(state: DecodeState, node: unknown, levels: number): unknown {
  if (typeof node !== "object" || node === null) return node;
  if (Object.hasOwn(node, TAG)) return reviveTagged(state, node as JsonObject, levels);
  return Array.isArray(node) ? reviveItems(state, node, levels) : reviveProperties(state, node as JsonObject, levels);
}

function reviveTagged(state: DecodeState, node: JsonObject, levels: number): unknown {
  const { [TAG]: type, v } = node;
  switch (type) {
    case "undefined":
      return undefined;
    case "number":
      return SPECIAL_NUMBERS.has(v) ? SPECIAL_NUMBERS.get(v) : fail(state, "not a special number");
    case "bigint":
      return typeof v === "string" && /^-?\d+$/.test(v) ? BigInt(v) : fail(state, "not a bigint");
    case "Date":
      return new Date(typeof v === "string" ? v : Number.NaN);
    case "Map":
      return new Map(reviveEntries(state, expectList(state, v), levels));
    case "Set":
      return new Set(reviveItems(state, expectList(state, v), levels));
    case "Error":
      return reviveError(state, reviveProperties(state, expectObject(state, v), levels));
    case "RegExp":
      return new RegExp(expectString(state, expectList(state, v)[0]), expectString(state, expectList(state, v)[1]));
    case "URL":
      return new URL(expectString(state, v));
    case "Object":
      return reviveProperties(state, expectObject(state, v), levels);
  }
  const make = BINARY_TYPES.get(type);
  if (make === undefined) return fail(state, `of a type that this version of Pawl does not know (${type})`);
  return make(Uint8Array.from(Buffer.from(expectString(state, v), "base64")).buffer);
}

function reviveItems(state: DecodeState, items: unknown[], levels: number): unknown[] {
  const innerLevels = levels > 0 ? levels - 1 : fail(state, tooDeepMessage(state.depth));
  for (let index = 0; index < items.length; index++) {
    state.path.push(index);
    items[index] = revive(state, items[index], innerLevels);
    state.path.pop();
  }
  return items;
}

function reviveEntries(state: DecodeState, entries: unknown[], levels: number): Array<[unknown, unknown]> {
  // The array of key and value is part of the Map's encoding, so it is not counted as a level of nesting.
  return entries.map((entry) => reviveItems(state, expectList(state, entry), levels) as [unknown, unknown]);
}

function reviveProperties(state: DecodeState, object: JsonObject, levels: number): JsonObject {
  const innerLevels = levels > 0 ? levels - 1 : fail(state, tooDeepMessage(state.depth));
  for (const key of Object.keys(object)) {
    const storedValue = object[key];
    if (typeof storedValue !== "object" || storedValue === null) continue;
    state.path.push(key);
    const revivedValue = revive(state, storedValue, innerLevels);
    // The property is defined, because an assignment to the key __proto__ would set the prototype.
    if (revivedValue !== storedValue) {
      Object.defineProperty(object, key, { value: revivedValue, enumerable: true, writable: true, configurable: true });
    }
    state.path.pop();
  }
  return object;
}

function reviveError(state: DecodeState, fields: JsonObject): Error {
  const { stack, code, errors, data } = fields;
  return rebuildError({
    name: expectString(state, fields.name),
    message: expectString(state, fields.message),
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

function expectList(state: DecodeState, value: unknown): unknown[] {
  return Array.isArray(value) ? value : fail(state, "not a list");
}

function expectObject(state: DecodeState, value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : fail(state, "not an object");
}

function expectString(state: DecodeState, value: unknown): string {
  return typeof value === "string" ? value : fail(state, "not a string");
}

function fail(state: DecodeState, problem: string): never {
  throw damagedValueError(state.path, problem);
}

function damagedValueError(valuePath: Path, problem: string, cause?: unknown): SerializationError {
  const path = formatPath(valuePath);
  return new SerializationError(`Cannot read a stored value: ${path} is ${problem}; the row may be damaged.`, {
    path,
    cause,
  });
}
