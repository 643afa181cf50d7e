/** The API reference matches the types. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
// @ts-expect-error: a script, without types
import { apiReference } from "../../scripts/api-reference.mjs";

test("docs/api.md is up to date: node scripts/api-reference.mjs --write", () => {
  expect(readFileSync(join(import.meta.dirname, "../../docs/api.md"), "utf8")).toBe(apiReference());
});
