/** Applies a mutant to the texts of the source. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutant.js";

/** By file: its text with the bug. Throws if the mutant does not apply any more. */
export function applyMutant(root: string, { name, edits }: Mutant): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
    const times = text.split(find).length - 1;
    if (times !== 1)
      throw new Error(
        `The mutant "${name}" does not apply: its text is ${times} times in ${file}. Change its edit in test/simulation/mutants:\n${find}`,
      );
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return texts;
}
