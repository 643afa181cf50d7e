/**
 * Array literals for `unnest`. `pg` would make them too, but it copies every element twice to escape it; these look first.
 * A column that is null throughout is sent as NULL: `unnest` pads it to the length of the others.
 */

/** Elements that need no quotes: uuids, whole numbers, booleans. */
export function plainArray(items: readonly (string | number | boolean | null)[]): string | null {
  if (items.every(isNull)) return items.length === 0 ? "{}" : null;
  return `{${items.map((item) => item ?? "NULL").join(",")}}`;
}

export function textArray(items: readonly (string | null)[]): string | null {
  if (items.every(isNull)) return items.length === 0 ? "{}" : null;
  if (!items.some(needsOwnEscaping)) return `{${JSON.stringify(items).slice(1, -1)}}`;
  return `{${items.map((item) => (item === null ? "NULL" : `"${item.replace(quoteOrBackslash, "\\$&")}"`)).join(",")}}`;
}

/** JSON writes a quote and a backslash as an array literal does, and null as well; these it writes in ways of its own. */
const jsonOnlyEscapes = /[\p{Cc}\p{Cs}]/u;
const needsOwnEscaping = (item: string | null) => item !== null && jsonOnlyEscapes.test(item);

const quoteOrBackslash = /["\\]/g;
const isNull = (item: unknown) => item === null;
