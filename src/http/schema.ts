/**
 * Small schemas for requests and responses. Each is written once and used three times: to check a request, to describe it
 * in the OpenAPI document, and in tests to check the responses.
 */

/** A schema in the vocabulary of JSON Schema 2020-12, which OpenAPI 3.1 uses. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Schemas by name. */
export type Components = Readonly<Record<string, JsonSchema>>;

/** Says where a value does not fit its schema. */
export class SchemaError extends Error {}

export interface Schema<T> {
  readonly json: JsonSchema;
  /** Whether the value may be left out of an object. */
  readonly isOptional: boolean;
  /** The named schemas that `json` refers to. */
  readonly components: Components;
  /** @throws SchemaError with a sentence that names the place */
  parse(value: unknown, place: string): T;
}

/** The type of the values that a schema accepts. */
export type Parsed<S> = S extends Schema<infer T> ? T : never;

function schema<T>(
  json: JsonSchema,
  parse: (value: unknown, place: string) => T,
  inner: { readonly isOptional?: boolean; readonly components?: Components } = {},
): Schema<T> {
  return { json, parse, isOptional: inner.isOptional ?? false, components: inner.components ?? {} };
}

const refuse = (place: string, expected: string, value: unknown): never => {
  throw new SchemaError(`${place} must be ${expected}, not ${describe(value)}.`);
};

function describe(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export function text(description: string, limits: { readonly maxLength?: number } = {}): Schema<string> {
  const { maxLength = 4_000 } = limits;
  return schema({ type: "string", maxLength, description }, (value, place) => {
    if (typeof value !== "string") return refuse(place, "a text", value);
    if (value.length > maxLength) return refuse(place, `at most ${maxLength} characters long`, `${value.length}`);
    return value;
  });
}

/** One of a few texts. */
export function oneOf<const Choice extends string>(description: string, choices: readonly Choice[]): Schema<Choice> {
  return schema({ type: "string", enum: choices, description }, (value, place) =>
    (choices as readonly unknown[]).includes(value)
      ? (value as Choice)
      : refuse(place, `one of ${choices.join(", ")}`, value),
  );
}

/** A whole number. In a query it is written as text. */
export function integer(description: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER): Schema<number> {
  return schema({ type: "integer", minimum, maximum, description }, (value, place) => {
    const number = typeof value === "string" && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
    if (!Number.isSafeInteger(number)) return refuse(place, "a whole number", value);
    if ((number as number) < minimum || (number as number) > maximum)
      return refuse(place, `between ${minimum} and ${maximum}`, value);
    return number as number;
  });
}

export function number(description: string): Schema<number> {
  return schema({ type: "number", description }, (value, place) =>
    typeof value === "number" ? value : refuse(place, "a number", value),
  );
}

/** true or false. In a query it is written as text; `?plain` without a value, and 1, are true as well. */
export function flag(description: string): Schema<boolean> {
  return schema({ type: "boolean", description }, (value, place) => {
    if (value === true || value === "true" || value === "1" || value === "") return true;
    if (value === false || value === "false" || value === "0") return false;
    return refuse(place, "true or false", value);
  });
}

/** An instant: ISO 8601, or milliseconds since 1970. */
export function instant(description: string): Schema<Date> {
  const json = { type: ["string", "integer"], description: `${description} ISO 8601, or milliseconds since 1970.` };
  return schema(json, (value, place) => {
    const isMilliseconds = typeof value === "number" || (typeof value === "string" && /^-?\d{1,16}$/.test(value));
    const date = new Date(isMilliseconds ? Number(value) : typeof value === "string" ? value : Number.NaN);
    return Number.isNaN(date.getTime()) ? refuse(place, "an instant such as 2026-01-31T09:00:00Z", value) : date;
  });
}

/**
 * An instant in a request, of which a text with a time names its zone. Without one it would mean another instant on a server
 * in another zone.
 */
export function zonedInstant(description: string): Schema<Date> {
  const { json, parse } = instant(description);
  return schema(json, (value, place) =>
    typeof value === "string" && /\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(value) && !/[+-]\d\d:\d\d$/.test(value)
      ? refuse(place, "an instant with its zone such as 2026-01-31T09:00:00Z", value)
      : parse(value, place),
  );
}

/** An instant in a response. */
export function time(description: string): Schema<string> {
  return schema({ type: "string", format: "date-time", description }, (value, place) =>
    typeof value === "string" && !Number.isNaN(Date.parse(value)) ? value : refuse(place, "an instant", value),
  );
}

/** A duration. In a query, milliseconds are written as text. */
export function duration(description: string): Schema<string | number> {
  const json = {
    type: ["string", "integer"],
    description: `${description} Such as "2 days" or "250ms", or milliseconds.`,
  };
  return schema(json, (value, place) => {
    if (typeof value === "string") return /^\d{1,15}$/.test(value) ? Number(value) : value;
    return typeof value === "number" ? value : refuse(place, "a duration", value);
  });
}

/** A duration, or an instant with its zone: a text that begins with a year is an instant. */
export function durationOrInstant(description: string): Schema<string | number | Date> {
  const { json, parse } = duration(description);
  const instantText = zonedInstant("");
  return schema(
    {
      ...json,
      description: `${description} A duration such as "10m" (milliseconds if it is a number), or an instant.`,
    },
    (value, place) =>
      typeof value === "string" && /^\d{4}-/.test(value) ? instantText.parse(value, place) : parse(value, place),
  );
}

/** A value of the user, which no schema of Pawl describes. */
export function payload(description: string): Schema<unknown> {
  return schema({ description }, (value, place) => (value === undefined ? refuse(place, "a value", value) : value));
}

export function list<T>(description: string, items: Schema<T>, maxItems?: number): Schema<readonly T[]> {
  const json = { type: "array", items: items.json, description, ...(maxItems === undefined ? {} : { maxItems }) };
  return schema(
    json,
    (value, place) => {
      if (!Array.isArray(value)) return refuse(place, "a list", value);
      if (maxItems !== undefined && value.length > maxItems)
        return refuse(place, `a list of at most ${maxItems}`, `one of ${value.length}`);
      return value.map((item, index) => items.parse(item, `${place}[${index}]`));
    },
    { components: items.components },
  );
}

/** An object whose keys are names of the user. */
export function record<T>(description: string, values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return schema(
    { type: "object", additionalProperties: values.json, description },
    (value, place) => {
      if (!isObject(value)) return refuse(place, "an object", value);
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, values.parse(item, `${place}.${key}`)]),
      );
    },
    { components: values.components },
  );
}

export function optional<T>(inner: Schema<T>): Schema<T | undefined> {
  return schema(inner.json, (value, place) => (value === undefined ? undefined : inner.parse(value, place)), {
    isOptional: true,
    components: inner.components,
  });
}

export function nullable<T>(inner: Schema<T>): Schema<T | null> {
  const { type, enum: choices, ...rest } = inner.json;
  const json =
    "$ref" in inner.json
      ? { anyOf: [inner.json, { type: "null" }] }
      : {
          ...rest,
          ...(type === undefined ? {} : { type: [...[type].flat(), "null"] }),
          ...(Array.isArray(choices) ? { enum: [...choices, null] } : {}),
        };
  return schema(json, (value, place) => (value === null ? null : inner.parse(value, place)), inner);
}

type Fields = Readonly<Record<string, Schema<unknown>>>;
type OptionalKeys<F extends Fields> = { [K in keyof F]: undefined extends Parsed<F[K]> ? K : never }[keyof F];
/** The type of an object with these fields. A field whose schema accepts undefined may be left out. */
export type ParsedObject<F extends Fields> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: Parsed<F[K]>;
} & { readonly [K in OptionalKeys<F>]?: Exclude<Parsed<F[K]>, undefined> };

export interface ObjectSchema<F extends Fields> extends Schema<ParsedObject<F>> {
  readonly fields: F;
}

/** An object with these fields and no others. */
export function object<F extends Fields>(description: string, fields: F): ObjectSchema<F> {
  const required = Object.keys(fields).filter((name) => !(fields[name] as Schema<unknown>).isOptional);
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.json]));
  const json = {
    type: "object",
    ...(description === "" ? {} : { description }),
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
  const parse = (value: unknown, place: string) => {
    if (!isObject(value)) return refuse(place, "an object", value);
    for (const key of Object.keys(value))
      if (!Object.hasOwn(fields, key))
        throw new SchemaError(
          `${place} has no field ${JSON.stringify(key)}; it has ${Object.keys(fields).join(", ")}.`,
        );
    const entries = Object.entries(fields).flatMap(([name, field]) => {
      const parsed = field.parse(Object.hasOwn(value, name) ? value[name] : undefined, `${place}.${name}`);
      return parsed === undefined ? [] : [[name, parsed] as const];
    });
    return Object.fromEntries(entries) as ParsedObject<F>;
  };
  const components = Object.assign({}, ...Object.values(fields).map((field) => field.components)) as Components;
  return { ...schema(json, parse, { components }), fields };
}

/** A schema that the OpenAPI document describes once, under this name. */
export function named<T>(name: string, inner: Schema<T>): Schema<T> {
  const components = { ...inner.components, [name]: inner.json };
  return schema({ $ref: `#/components/schemas/${name}` }, inner.parse, { isOptional: inner.isOptional, components });
}

/** A schema that is written as JSON Schema and accepts any value, for responses of several shapes. */
export const described = (json: JsonSchema): Schema<unknown> => schema(json, (value) => value);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
