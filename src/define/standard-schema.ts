/** The part of Standard Schema (version 1) that Pawl uses. zod, valibot, arktype and others implement it. */
import { InvalidInputError } from "../core/errors/errors.js";
import { requireSyncResult } from "../core/naming/sync-result.js";

/** A schema of zod, valibot, arktype or another library that implements Standard Schema. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  /** The interface that all these libraries have in common. */
  readonly "~standard": {
    /** The version of Standard Schema. */
    readonly version: 1;
    /** The library that made the schema. */
    readonly vendor: string;
    /** Checks a value: returns the value as the schema transforms it, or a list of issues. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Exists only for the compiler, to carry the types. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The result of a validation: the value, or the issues. */
type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One reason why a value is invalid. */
interface SchemaIssue {
  /** The reason in one sentence. */
  readonly message: string;
  /** The keys that lead to the invalid part of the value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type that a schema accepts. */
export type InferInput<Schema extends StandardSchemaV1<any, any>> = NonNullable<Schema["~standard"]["types"]>["input"];
/** The type that a schema returns. */
export type InferOutput<Schema extends StandardSchemaV1<any, any>> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

/**
 * Returns the value as the schema transforms it, with defaults filled in for example.
 *
 * @throws InvalidInputError that lists what is wrong with the value
 */
export async function validate(schema: StandardSchemaV1, value: unknown, what: string): Promise<unknown> {
  const result: unknown = await schema["~standard"].validate(value);
  if (typeof result !== "object" || result === null)
    throw new InvalidInputError(`The ${what} could not be checked: its schema returned ${String(result)}.`);
  const schemaIssues = requireSyncResult(
    "issues of a schema",
    (result as { readonly issues?: readonly SchemaIssue[] }).issues,
  );
  if (schemaIssues === undefined) return (result as { readonly value: unknown }).value;
  const issues = schemaIssues.map((issue) => ({ message: issue.message, path: (issue.path ?? []).map(keyOf) }));
  throw new InvalidInputError(`The ${what} is not valid`, { issues });
}

function keyOf(part: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof part === "object" ? part.key : part;
  return typeof key === "number" ? key : String(key);
}

/** A larger description would make every registration and every list of workflows slow. */
const maxJsonSchemaLength = 32_768;

/**
 * The JSON Schema of the values that a schema accepts, for forms; null if the library offers none (Standard JSON Schema),
 * if this schema has none (a custom check, for example), or if it is very large.
 */
export function jsonSchemaOf(schema: StandardSchemaV1<any, any> | null): Readonly<Record<string, unknown>> | null {
  const { jsonSchema } = (schema?.["~standard"] ?? {}) as {
    readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown };
  };
  try {
    const text = JSON.stringify(jsonSchema?.input?.({ target: "draft-2020-12" }));
    if (text === undefined || text.length > maxJsonSchemaLength) return null;
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? (json as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
