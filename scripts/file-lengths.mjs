// No source file is longer than 400 lines: a longer one holds several ideas, and one of them deserves a file and a name
// of its own. Tests may have any length.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

const mostLines = 400;

/** Prints the problems and returns an exit code. */
export function checkFileLengths() {
  const lengths = new Map(sources().map((file) => [file, linesOf(file)]));
  const tooLong = [...lengths].filter(([, lines]) => lines > mostLines);
  for (const [file, lines] of tooLong) console.error(`${file} has ${lines} lines; the most is ${mostLines}.`);
  return tooLong.length === 0 ? 0 : 1;
}

function sources() {
  return ["src", "dashboard"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((file) => `${folder}/${file.replaceAll("\\", "/")}`)
      // Types that are generated have any length.
      .filter((file) => /\.(?:tsx?|css)$/.test(file) && !/\.(?:test|d)\.ts$/.test(file)),
  );
}

function linesOf(file) {
  return readFileSync(join(root, file), "utf8").split("\n").length - 1;
}
