import { join } from "node:path";
import { expect, test } from "vitest";
import { syntaxErrorIn } from "./syntax-error.js";

const file = join(process.cwd(), "src/order.ts");

const byNode = Object.assign(new SyntaxError("Expression expected"), { code: "ERR_INVALID_TYPESCRIPT_SYNTAX" });
byNode.stack = `${file}:3\n  const x = ;\n            ^\n\n${byNode.stack}`;

test.each([
  [
    "esbuild",
    new Error(
      `Transform failed with 2 errors:\n${file}:3:12: ERROR: Unexpected ";"\n${file}:9:1: ERROR: Unexpected "}"`,
    ),
    'src/order.ts:3: Unexpected ";"',
  ],
  [
    "swc",
    new Error(
      `  x Expression expected\n   ,-[${file}:3:1]\n 2 | {\n 3 |   const x = ;\n   :             ^\n   \`----\n`,
    ),
    "src/order.ts:3: Expression expected",
  ],
  [
    "swc in colour terminals",
    new Error(`  × Expression expected\n   ╭─[${file}:3:1]\n 3 │   const x = ;\n   ╰────\n`),
    "src/order.ts:3: Expression expected",
  ],
  ["Node", byNode, "src/order.ts:3: Expression expected"],
])("the place and the message in an error of %s are found", (_tool, error, sentence) => {
  expect(syntaxErrorIn(error, file)).toBe(sentence);
});

test("an error of another kind returns null", () => {
  expect(syntaxErrorIn(new Error("first\nsecond"), file)).toBe(null);
  expect(syntaxErrorIn(new TypeError("x is not a function"), file)).toBe(null);
  expect(syntaxErrorIn("text", file)).toBe(null);
});
