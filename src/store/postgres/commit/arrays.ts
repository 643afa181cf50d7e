/**
 * Builds array literals for `unnest`. `pg` can build them, too, but copies every element twice to escape it; these
 * functions first check whether escaping is needed. A column that contains only nulls is sent as NULL, which `unnest`
 * pads to the length of the other arrays.
 */

/** For elements that need no quotes: uuids, whole numbers, booleans. */
export function plainArray(items: readonly (string | number | boolean | null)[]): string | null {
  if (items.every(isNull)) return items.length === 0 ? "{}" : null;
  return `{${items.map((item) => item ?? "NULL").join(",")}}`;
}

export function textArray(items: readonly (string | null)[]): string | null {
  if (items.every(isNull)) return items.length === 0 ? "{}" : null;
  if (!items.some(needsOwnEscaping)) return `{${JSON.stringify(items).slice(1, -1)}}`;
  return `{${items.map((item) => (item === null ? "NULL" : `"${item.replace(quoteOrBackslash, "\\$&")}"`)).join(",")}}`;
}

/** Characters that JSON escapes differently. Quotes, backslashes and null are written in JSON as in array literals. */
const jsonOnlyEscapes = /[\p{Cc}\p{Cs}]/u;
const needsOwnEscaping = (item: string | null) => item !== null && jsonOnlyEscapes.test(item);

const quoteOrBackslash = /["\\]/g;
const isNull = (item: unknown) => item === null;
