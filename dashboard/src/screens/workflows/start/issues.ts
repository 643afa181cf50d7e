/** What the server found wrong with the input, sorted to the fields of the form. */
import type { ApiError } from "../../../api/api.js";
import type { Field } from "./fields.js";

export interface SortedIssues {
  readonly byField: Readonly<Record<string, string>>;
  /** Issues that belong to no field of the form. */
  readonly others: readonly string[];
}

export function sortIssues(error: ApiError | null, fields: readonly Field[] | null): SortedIssues {
  const keys = new Set(keysOf(fields ?? []));
  const byField: Record<string, string> = {};
  const others: string[] = [];
  for (const { message, path = [] } of error?.issues ?? []) {
    const parts = path.map(partOf);
    const key = closestKey(parts, keys);
    if (key === null) others.push(parts.length === 0 ? message : `${parts.join(".")}: ${message}`);
    else byField[key] = byField[key] === undefined ? message : `${byField[key]} ${message}`;
  }
  return { byField, others };
}

/** A part of a path is a name, or an object with the name (Standard Schema allows both). */
const partOf = (part: unknown): string =>
  String(typeof part === "object" && part !== null ? (part as { readonly key?: unknown }).key : part);

const keysOf = (fields: readonly Field[]): string[] =>
  fields.flatMap(({ key, kind, fields: inner }) => (kind === "object" ? keysOf(inner) : [key]));

/** An issue about an item of a list belongs to the field of the list. */
function closestKey(parts: readonly string[], keys: ReadonlySet<string>): string | null {
  for (let length = parts.length; length > 0; length -= 1) {
    const key = parts.slice(0, length).join(".");
    if (keys.has(key)) return key;
  }
  return null;
}
