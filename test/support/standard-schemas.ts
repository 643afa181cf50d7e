import type { StandardSchemaV1 } from "../../src/define/standard-schema.js";

/** A Standard Schema that answers with what this returns. */
export function schema<Input = any, Output = Input>(answer: (value: any) => unknown): StandardSchemaV1<Input, Output> {
  return { "~standard": { version: 1, vendor: "test", validate: answer as never } };
}

/** Accepts what it is given, as this makes it. */
export const making = <Output>(make: (value: any) => Output) =>
  schema<any, Output>((value) => ({ value: make(value) }));

export const accepting = schema((value) => ({ value }));
export const refusing = schema(() => ({ issues: [{ message: "too large", path: ["n"] }] }));
