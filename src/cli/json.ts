/**
 * Renders any value of a workflow as JSON that any program can read: types that JSON lacks become the nearest one, and
 * no field is left out.
 */

/** @param indent spaces; without it the text is one line */
export function jsonOf(value: unknown, indent?: number): string {
  return JSON.stringify(toJson(value) ?? null, null, indent);
}

function toJson(value: unknown): unknown {
  switch (typeof value) {
    case "bigint":
      return String(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "object":
      return value === null ? null : objectToJson(value);
    default:
      return value;
  }
}

function objectToJson(value: object): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Error) return errorToJson(value);
  if (value instanceof Map) return [...value].map(([key, entry]) => [toJson(key), toJson(entry)]);
  if (value instanceof Set) return [...value].map(toJson);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof URL || value instanceof RegExp) return String(value);
  if (Array.isArray(value)) return value.map((element) => toJson(element) ?? null);
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, toJson(field) ?? null]));
}

function errorToJson(error: Error): object {
  const { name, message, stack, cause } = error;
  const { code } = error as { readonly code?: unknown };
  return {
    name,
    message,
    ...(code === undefined ? {} : { code: toJson(code) }),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause: toJson(cause) }),
  };
}
