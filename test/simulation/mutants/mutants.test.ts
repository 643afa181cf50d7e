/** That every mutant still applies to the source. `npm run simulate -- --mutants` finds them. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { applyMutant } from "./apply.js";
import { foundBugs } from "./found-bugs.js";
import { mutants } from "./mutants.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const all = [...mutants, ...foundBugs];

test.each(all)("the mutant $name applies to the source, and changes it", (mutant) => {
  const texts = applyMutant(root, mutant);
  expect(texts.size).toBeGreaterThan(0);
  for (const { find, replace } of mutant.edits) expect(replace).not.toBe(find);
});

test("each mutant has a name of its own and says what it breaks", () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  for (const { breaks } of all) expect(breaks).toMatch(/^[A-Z].*[.]$/);
});

test("a mutant whose text is gone from the source is an error that names it", () => {
  const edits = [{ file: "src/index.ts", find: "a text that is not there", replace: "" }];
  expect(() => applyMutant(root, { name: "lost", breaks: "", edits })).toThrow(/"lost" does not apply.*0 times/);
});
