// One round of this code, one of the other, and so on: see scripts/bench-compare.mjs, which finds the servers first.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { median } from "./statistics.mjs";

const { store, only, rounds, folder, here, other, with: revision } = JSON.parse(process.env.PAWL_COMPARE);

function figuresOf(code) {
  const json = join(folder, "figures.json");
  const program = join(code, "bench/main.mjs");
  const args = ["--store", store, "--only", only, "--rounds", "5", "--json", json];
  execFileSync(process.execPath, [program, ...args], { cwd: code, stdio: ["ignore", "ignore", "inherit"] });
  const { results } = JSON.parse(readFileSync(json, "utf8"));
  return new Map(
    results.flatMap((result) => result.figures.map((figure) => [`${result.store} ${figure.name}`, figure])),
  );
}

const ratios = new Map();
for (let round = 0; round < Number(rounds); round += 1) {
  // The order alternates from round to round, so that neither side always has the warm cache.
  const [first, second] = round % 2 === 0 ? [here, other] : [other, here];
  const [one, two] = [figuresOf(first), figuresOf(second)];
  const [mine, theirs] = first === here ? [one, two] : [two, one];
  for (const [name, figure] of mine) {
    const before = theirs.get(name);
    if (before === undefined) continue;
    const ratio = figure.median / before.median;
    ratios.set(name, [...(ratios.get(name) ?? []), ratio]);
  }
  console.log(`round ${round + 1} of ${rounds}`);
}
console.log(
  `\nThis code compared with ${revision}, the median of ${rounds} alternating rounds (all of them behind it):`,
);
for (const [name, all] of ratios)
  console.log(`${name}: ${median(all).toFixed(2)}  (${all.map((ratio) => ratio.toFixed(2)).join(" ")})`);
