/**
 * The fields of a start form, from the JSON Schema of the input. What a form cannot express becomes a field for JSON, so that
 * every schema gets a form.
 */

type Json = Readonly<Record<string, unknown>>;

export type ScalarKind = "text" | "number" | "integer" | "boolean";

export interface Field {
  /** Its names from the outermost object, joined by dots, which identifies the field in the form. */
  readonly key: string;
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly kind: ScalarKind | "choice" | "list" | "object" | "json";
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  /** The default of the schema; undefined: none. */
  readonly initial: unknown;
  /** Of a text: `date` has a calendar. */
  readonly format: string;
  /** The allowed values of a choice. */
  readonly choices: readonly unknown[];
  /** Of a list: the kind of its items. */
  readonly item: ScalarKind;
  readonly fields: readonly Field[];
  readonly limits: Limits;
}

export interface Limits {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Deeper objects are written as JSON: a form of five levels cannot be read. */
const maxDepth = 4;
const maxFields = 100;

const scalarKinds: Readonly<Record<string, ScalarKind>> = {
  string: "text",
  number: "number",
  integer: "integer",
  boolean: "boolean",
};

/** Returns null if the input is no object with known fields; it is then written as JSON. */
export function fieldsOf(schema: unknown): readonly Field[] | null {
  if (!isObject(schema)) return null;
  const root = resolve(schema, schema);
  const fields = root === null || root.type !== "object" ? null : fieldsOfObject(root, schema, "", 1);
  return fields === null || fields.length === 0 || fields.length > maxFields ? null : fields;
}

function fieldsOfObject(schema: Json, root: Json, prefix: string, depth: number): Field[] | null {
  if (!isObject(schema.properties)) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(schema.properties).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, { root, prefix, depth, isRequired: required.has(name) }),
  );
}

interface Place {
  readonly root: Json;
  readonly prefix: string;
  readonly depth: number;
  readonly isRequired: boolean;
}

function fieldOf(name: string, property: Json, { root, prefix, depth, isRequired }: Place): Field {
  const { schema, isNullable } = withoutNull(property, root);
  const key = prefix === "" ? name : `${prefix}.${name}`;
  const textOf = (field: "title" | "description" | "format") => {
    const value = property[field] ?? schema?.[field];
    return typeof value === "string" ? value : "";
  };
  const base = {
    ...{ key, name, isRequired, isNullable, choices: [], item: "text" as const, fields: [], limits: {} },
    label: textOf("title") || name,
    description: textOf("description"),
    format: textOf("format"),
    initial: property.default ?? schema?.default,
  };
  const json: Field = { ...base, kind: "json" };
  if (schema === null) return json;
  const choices = choicesOf(schema);
  if (choices !== null) return { ...base, kind: "choice", choices };
  const scalar = scalarKinds[String(schema.type)];
  if (scalar !== undefined) return { ...base, kind: scalar, limits: limitsOf(schema) };
  if (schema.type === "array") {
    const items = isObject(schema.items) ? resolve(schema.items, root) : null;
    const item = scalarKinds[String(items?.type)];
    return item === undefined || item === "boolean" || items?.enum !== undefined
      ? json
      : { ...base, kind: "list", item };
  }
  const hasOthers = isObject(schema.additionalProperties);
  const fields =
    schema.type === "object" && depth < maxDepth && !hasOthers ? fieldsOfObject(schema, root, key, depth + 1) : null;
  return fields === null || fields.length === 0 || isNullable ? json : { ...base, kind: "object", fields };
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Follows references within the document; null if one leads elsewhere or in a circle. */
function resolve(schema: Json, root: Json): Json | null {
  let current: unknown = schema;
  for (let steps = 0; steps < 10; steps += 1) {
    if (!isObject(current)) return null;
    if (typeof current.$ref !== "string") return current;
    if (!current.$ref.startsWith("#")) return null;
    const parts = current.$ref.split("/").slice(1);
    current = parts.reduce<unknown>(
      (value, part) => (isObject(value) ? value[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined),
      root,
    );
  }
  return null;
}

/** A schema that also allows null, without that; null if it allows several other types. */
function withoutNull(property: Json, root: Json): { readonly schema: Json | null; readonly isNullable: boolean } {
  const schema = resolve(property, root);
  if (schema === null) return { schema: null, isNullable: false };
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) {
    const others = union.filter((one) => !isObject(one) || one.type !== "null");
    const isNullable = others.length < union.length;
    const [only] = others;
    return { schema: others.length === 1 && isObject(only) ? resolve(only, root) : null, isNullable };
  }
  if (Array.isArray(schema.type)) {
    const others = schema.type.filter((type) => type !== "null");
    const isNullable = others.length < schema.type.length;
    return { schema: others.length === 1 ? { ...schema, type: others[0] } : null, isNullable };
  }
  return { schema: schema.allOf === undefined ? schema : null, isNullable: false };
}

function choicesOf(schema: Json): readonly unknown[] | null {
  if ("const" in schema) return [schema.const];
  const isScalar = (value: unknown) => value === null || typeof value !== "object";
  return Array.isArray(schema.enum) && schema.enum.every(isScalar) ? schema.enum : null;
}

function limitsOf(schema: Json): Limits {
  const numbers = ["minLength", "maxLength", "minimum", "maximum"] as const;
  const limits: Record<string, unknown> = {};
  for (const name of numbers) if (typeof schema[name] === "number") limits[name] = schema[name];
  if (typeof schema.pattern === "string") limits.pattern = schema.pattern;
  return limits as Limits;
}
