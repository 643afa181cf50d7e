import type { StandardSchemaV1 } from "@standard-schema/spec";
import { workflow } from "pawl";
import { expect, expectTypeOf, test } from "vitest";

test("a schema that is typed by the specification itself is accepted, and its types are inferred", () => {
  const trimmed: StandardSchemaV1<string, { readonly text: string }> = {
    "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: { text: String(value).trim() } }) },
  };
  const shout = workflow("shout", { input: trimmed }, async (_ctx, { text }) => {
    expectTypeOf(text).toEqualTypeOf<string>();
    return text.toUpperCase();
  });
  expect(shout.inputSchema).toBe(trimmed);
});
