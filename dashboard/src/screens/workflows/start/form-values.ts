/** From what a person has typed to the input of the run, and back. Checked before anything is sent. */
import type { Field, ScalarKind } from "./fields.js";

/** What is typed into each field, by its key. Empty: the field is left out. */
export type Typed = Readonly<Record<string, string>>;

export interface FormValue {
  readonly value: Readonly<Record<string, unknown>>;
  /** What is wrong, by the key of the field. */
  readonly errors: Readonly<Record<string, string>>;
}

const nothing = Symbol("left out");

export function readForm(fields: readonly Field[], typed: Typed): FormValue {
  const errors: Record<string, string> = {};
  return { value: readFields(fields, typed, errors), errors };
}

function readFields(fields: readonly Field[], typed: Typed, errors: Record<string, string>): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const field of fields) {
    const one =
      field.kind === "object" ? readObject(field, typed, errors) : readField(field, typed[field.key] ?? "", errors);
    if (one !== nothing) value[field.name] = one;
  }
  return value;
}

function readObject(field: Field, typed: Typed, errors: Record<string, string>): unknown {
  const isEmpty = !field.isRequired && !hasTyped(field.fields, typed);
  return isEmpty ? nothing : readFields(field.fields, typed, errors);
}

const hasTyped = (fields: readonly Field[], typed: Typed): boolean =>
  fields.some((field) =>
    field.kind === "object"
      ? hasTyped(field.fields, typed)
      : (typed[field.key] ?? "") !== "" && field.initial === undefined,
  );

function readField(field: Field, text: string, errors: Record<string, string>): unknown {
  if (text.trim() === "") {
    if (!field.isRequired) return nothing;
    if (field.isNullable) return null;
    if (field.kind === "list") return [];
    errors[field.key] = "This is required.";
    return nothing;
  }
  const problem = (message: string) => {
    errors[field.key] = message;
    return nothing;
  };
  try {
    if (field.kind === "json") return JSON.parse(text) as unknown;
    if (field.kind === "choice") return field.choices[Number(text)];
    if (field.kind === "list")
      return text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map((line) => readScalar(field.item, field.item === "text" ? line : line.trim()));
    const value = readScalar(field.kind as ScalarKind, text);
    const broken = brokenLimit(field, value);
    if (broken !== null) errors[field.key] = broken;
    return value;
  } catch (error) {
    return problem(field.kind === "json" ? `This is not JSON: ${(error as Error).message}.` : (error as Error).message);
  }
}

function readScalar(kind: ScalarKind, text: string): unknown {
  if (kind === "text") return text;
  if (kind === "boolean") return text === "true";
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`“${text}” is not a number.`);
  if (kind === "integer" && !Number.isInteger(value)) throw new Error(`“${text}” is not a whole number.`);
  return value;
}

function brokenLimit({ limits, format }: Field, value: unknown): string | null {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = limits;
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = limits;
  if (typeof value === "number") {
    if (value < minimum) return `The smallest allowed number is ${minimum.toLocaleString("en")}.`;
    return value > maximum ? `The largest allowed number is ${maximum.toLocaleString("en")}.` : null;
  }
  if (typeof value !== "string") return null;
  if (value.length < minLength) return `At least ${minLength} characters are needed.`;
  if (value.length > maxLength) return `At most ${maxLength.toLocaleString("en")} characters are allowed.`;
  if (format === "date") return /^\d{4}-\d\d-\d\d$/.test(value) ? null : "Write a date as 2026-01-31.";
  if (format === "date-time")
    return Number.isNaN(Date.parse(value)) ? "Write an instant as 2026-01-31T09:00:00Z." : null;
  return pattern === undefined || matches(pattern, value) ? null : `This does not fit the pattern ${pattern}`;
}

/** A pattern that this browser does not understand is left to the server. */
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

/** What a form shows at first: the defaults of the schema. */
export function initialTyped(fields: readonly Field[]): Typed {
  const typed: Record<string, string> = {};
  for (const field of fields) {
    if (field.kind === "object") Object.assign(typed, initialTyped(field.fields));
    else if (field.initial !== undefined) typed[field.key] = textOf(field, field.initial);
    else if (field.kind === "boolean" && field.isRequired && !field.isNullable) typed[field.key] = "false";
  }
  return typed;
}

/** What has to be typed for a value; null if the form cannot express it, for example because it has other fields. */
export function typedFor(fields: readonly Field[], value: unknown): Typed | null {
  const typed: Record<string, string> = {};
  fill(fields, value, typed);
  // A value that breaks a limit can be shown, and corrected there.
  return isSame(readForm(fields, typed).value, value) ? typed : null;
}

function fill(fields: readonly Field[], value: unknown, typed: Record<string, string>): void {
  if (typeof value !== "object" || value === null) return;
  for (const field of fields) {
    const one = (value as Record<string, unknown>)[field.name];
    if (one === undefined) continue;
    if (field.kind === "object") fill(field.fields, one, typed);
    else typed[field.key] = textOf(field, one);
  }
}

function textOf(field: Field, value: unknown): string {
  if (field.kind === "choice") return String(field.choices.indexOf(value));
  if (field.kind === "json") return JSON.stringify(value, null, 2);
  if (field.kind === "list" && Array.isArray(value)) return value.join("\n");
  return value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Whether two values are the same JSON, in whatever order their fields are. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const [first, second] = [Object.entries(a), Object.entries(b)];
  return (
    Array.isArray(a) === Array.isArray(b) &&
    first.length === second.length &&
    first.every(([name, one]) => isSame(one, (b as Record<string, unknown>)[name]))
  );
}
