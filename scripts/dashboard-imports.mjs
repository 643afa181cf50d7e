// Part of `npm run check`: who may import whom in the dashboard. dependency-cruiser cannot do it, because with swc, which it
// reads TypeScript with here, it reads no JSX.
//
// The dashboard runs in browsers and knows the HTTP API alone, so it imports nothing from outside of its own sources but
// packages. What screens share knows no screen. No two files import each other in a circle, not even for types.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "./run.mjs";

const home = "dashboard/src/";

/** Formatted code has its imports at the beginning of lines; workers are named by a URL. */
const patterns = [
  /^(?:import|export)\b[^;"]*?\bfrom "([^"]+)"/gm,
  /^import "([^"]+)"/gm,
  /\bimport\(\s*"([^"]+)"/g,
  /\bnew URL\("(\.[^"]+)", import\.meta\.url\)/g,
];

/** Prints the problems and returns an exit code. */
export function checkDashboardImports() {
  const imports = new Map(sources().map((file) => [file, importsOf(file)]));
  const problems = [...imports].flatMap(([file, found]) => found.flatMap((one) => problemOf(file, one)));
  const all = [...problems, ...cyclesIn(imports)];
  for (const problem of all) console.error(problem);
  return all.length === 0 ? 0 : 1;
}

const sources = () =>
  readdirSync(join(root, home), { recursive: true })
    .map((file) => home + file.replaceAll("\\", "/"))
    .filter((file) => /\.tsx?$/.test(file) && !/\.(?:test|d)\.ts$/.test(file))
    .sort();

/** The files of ours that a file imports, as paths from the root. */
function importsOf(file) {
  const text = readFileSync(join(root, file), "utf8");
  const named = patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, path]) => path));
  return named
    .filter((path) => path.startsWith("."))
    .map((path) => sourceOf(posix.join(dirname(file), path.replace(/\?.*$/, ""))));
}

/** TypeScript is imported by the names of what it compiles to. */
const sourceOf = (path) =>
  [path, ...["ts", "tsx", "d.ts"].map((ending) => path.replace(/\.js$/, `.${ending}`))].find((candidate) =>
    existsSync(join(root, candidate)),
  ) ?? path;

function problemOf(file, imported) {
  // Generated before it is used, and not there in a fresh clone.
  if (imported === `${home}api/openapi.js`) return [];
  if (!imported.startsWith(home)) return [`${file} imports ${imported}, which is not part of the dashboard.`];
  if (!existsSync(join(root, imported))) return [`${file} imports ${imported}, which does not exist.`];
  const isShared = /^dashboard\/src\/(?:actions|api|live|router|ui)\//.test(file);
  return isShared && imported.startsWith(`${home}screens/`)
    ? [`${file} imports ${imported}, but what screens share must know no screen.`]
    : [];
}

/** One line for each circle that is found. */
function cyclesIn(imports) {
  const done = new Set();
  const cycles = [];
  const visit = (file, path) => {
    if (path.includes(file))
      return void cycles.push(`A circle of imports: ${[...path.slice(path.indexOf(file)), file].join(" → ")}`);
    if (done.has(file)) return;
    for (const imported of imports.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return cycles;
}
