/** The checker itself: sound worlds pass, and each world that is wrong in one way is rejected by the invariant that it violates. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { findViolations } from "./checker.js";
import { corruptions } from "./corruptions.js";
import { collectEvidence, type Evidence } from "./evidence.js";
import { Trace } from "./kernel/trace.js";
import { Tampering } from "./tampering.js";
import { World } from "./world.js";

/** So many worlds are looked through for something that can be corrupted. */
const mostSeeds = 60;
const sound: Evidence[] = [];

async function soundEvidence(index: number): Promise<Evidence> {
  const known = sound[index];
  if (known !== undefined) return known;
  const world = new World({ seed: index + 1, trace: new Trace() });
  await world.run();
  const evidence = await collectEvidence(world);
  expect(findViolations(evidence)).toEqual([]);
  sound.push(evidence);
  return evidence;
}

test.each(corruptions)("rejected: $name", async ({ violates, corrupt }) => {
  for (let index = 0; index < mostSeeds; index += 1) {
    const world = new Tampering(await soundEvidence(index));
    if (!corrupt(world)) continue;
    const violations = findViolations(world.evidence as Evidence);
    const found = new Set(violations.map(({ invariant }) => invariant));
    expect([...found].sort(), JSON.stringify(violations, null, 1)).toEqual([...violates].sort());
    return;
  }
  throw new Error(`None of ${mostSeeds} worlds has anything that could be corrupted like this.`);
});

/** The files that this one imports, without imports of types alone, which are gone when it is executed. */
function importsOf(file: string): string[] {
  const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type )[^;]*? from "([.][^"]+)";/gms);
  return [...imports].map(([, path]) => join(dirname(file), (path as string).replace(/[.]js$/, ".ts")));
}

function reachableFrom(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  for (const imported of importsOf(file)) reachableFrom(imported, known);
  return known;
}

test("the checker shares no code with the library, nor with what collects the evidence", () => {
  const here = dirname(fileURLToPath(import.meta.url));
  const code = [...reachableFrom(join(here, "checker.ts"))].map((file) => relative(here, file));
  expect(code).toContain("checks/steps.ts");
  expect(code.filter((file) => !/^(checker|evidence|checks\/[a-z-]+)[.]ts$/.test(file))).toEqual([]);
  // What executes the worlds does import the library, so this test can fail.
  expect(importsOf(join(here, "world.ts")).some((file) => file.includes("/src/store/"))).toBe(true);
});
