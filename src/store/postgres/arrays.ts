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
  let literal = "{";
  for (const item of items) {
    if (literal.length > 1) literal += ",";
    literal += item === null ? "NULL" : `"${special.test(item) ? item.replace(eachSpecial, "\\$&") : item}"`;
  }
  return `${literal}}`;
}

const special = /["\\]/;
const eachSpecial = /["\\]/g;
const isNull = (item: unknown) => item === null;
