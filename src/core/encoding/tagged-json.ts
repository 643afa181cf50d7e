/**
 * The encoding of user values as JSON text. A plain JSON value is its own encoding. A value that JSON cannot express is
 * written as `{"$pawl":"Date","v":"2025-01-01T00:00:00.000Z"}`: a type from a fixed list, and its content. An object that
 * itself has a key `$pawl` is written as `{"$pawl":"Object","v":{…}}`, so that it is not mistaken for a tagged value.
 */

/** The key that holds the type of a tagged value. */
export const TAG = "$pawl";
/**
 * A text contains the marker exactly if an object in it has the key `$pawl`, because in a JSON string quotes are escaped.
 */
export const MARKER = `"${TAG}":`;
export const ENCODED_UNDEFINED = `{"${TAG}":"undefined"}`;

/** How many objects may be nested in each other by default. */
export const MAX_DEPTH = 200;

/** The keys and indexes that lead to a place in a value. */
export type Path = Array<string | number>;

/** The types that are stored as bytes, each with a function that creates a value of the type from the stored bytes. */
export const BINARY_TYPES = new Map<unknown, (bytes: ArrayBuffer) => unknown>([
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

export function tooDeepMessage(depth: number): string {
  return `nested more than ${depth} levels deep`;
}

/** The path for display, such as `$.items[3].fn`; the middle of a very long path is left out. */
export function formatPath(path: Path): string {
  const parts = path.map((segment) => {
    if (typeof segment === "number") return `[${segment}]`;
    if (/^[\p{L}_$][\p{L}\d_$]{0,59}$/u.test(segment)) return `.${segment}`;
    return `[${JSON.stringify(segment.length > 60 ? `${segment.slice(0, 60)}…` : segment)}]`;
  });
  if (parts.length > 24) parts.splice(12, parts.length - 18, "…");
  return `$${parts.join("")}`;
}
