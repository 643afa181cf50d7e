// No source file is longer than 400 lines: a longer one holds several ideas, and one of them wants a file and a name of
// its own. Tests may be as long as they like.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

const mostLines = 400;

/** Still longer, and being taken apart. This list may only shrink: a file that has become short enough must leave it. */
const stillLonger = new Set(["src/worker/step/step.ts", "src/worker/worker.ts"]);

/** Says what is wrong; the answer is an exit code. */
export function checkFileLengths() {
  const lengths = new Map(sources().map((file) => [file, linesOf(file)]));
  const tooLong = [...lengths].filter(([file, lines]) => lines > mostLines && !stillLonger.has(file));
  const shortEnough = [...stillLonger].filter((file) => (lengths.get(file) ?? 0) <= mostLines);
  for (const [file, lines] of tooLong) console.error(`${file} has ${lines} lines; the most is ${mostLines}.`);
  for (const file of shortEnough) console.error(`${file} is short enough; take it off the list.`);
  return tooLong.length + shortEnough.length === 0 ? 0 : 1;
}

function sources() {
  return readdirSync(join(root, "src"), { recursive: true })
    .map((file) => `src/${file.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
}

function linesOf(file) {
  return readFileSync(join(root, file), "utf8").split("\n").length - 1;
}
