// `npm run bench:peers [-- --contender pawl,dbos] [--only W1,W2] [--rounds 5] [--quick] [--json FILE]`
//
// Installs the peers (a separate package, bench/peers) and runs the comparison under the peers' Node: some need a newer
// version than the library. See benchmark.mjs.

import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";
import { root, run } from "./run.mjs";

const folder = join(root, "bench/peers");
const programs = join(folder, "node_modules/.bin");

await install();
const { readArguments } = await import("../bench/peers/arguments.mjs");
const args = process.argv.slice(2);

await exitWith(async () => {
  // Checked before anything that takes time, because the arguments may be wrong.
  readArguments(args);
  await installPeers();
  return runBenchmark({ stores: ["postgres"], program: "bench/peers/main.mjs", args, node: join(programs, "node") });
});

/**
 * The peers are optional dependencies, so that one that cannot be installed does not prevent the others. npm also skips
 * those that do not support its own Node: when some are missing, it runs again on the Node that is now installed.
 */
async function installPeers() {
  if (missingPeers().length === 0) return;
  console.log("Installing the peers …");
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder];
  // One of the peers reports every installation to its makers otherwise.
  const env = { ...process.env, DO_NOT_TRACK: "1" };
  if ((await run("npm", args, { env })) !== 0 && missingPeers().includes("node"))
    throw new Error("The peers could not be installed; npm says why above.");
  if (missingPeers().length > 0)
    await run("npm", args, { env: { ...env, PATH: `${programs}${delimiter}${env.PATH}` } });
}

/** The peers that are not installed in the version that bench/peers/package.json asks for. */
function missingPeers() {
  const { dependencies, optionalDependencies } = readPackage(folder);
  return Object.entries({ ...dependencies, ...optionalDependencies })
    .filter(([name, version]) => readPackage(join(folder, "node_modules", name))?.version !== version)
    .map(([name]) => name);
}

function readPackage(path) {
  try {
    return JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}
