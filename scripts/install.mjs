// Installs the dev dependencies when they are not the ones package-lock.json asks for.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

export async function install() {
  if (isInstalled()) return;
  console.log("Installing the dependencies …");
  // Not `npm ci`: it requires that the lock file lists every platform's optional binaries, which a registry that does
  // not have them all cannot provide. With --no-save, install also follows the lock file and does not change it.
  if ((await run("npm", ["install", "--no-save", "--no-audit", "--no-fund"])) !== 0) {
    console.error("The dependencies could not be installed; npm says why above.");
    process.exit(1);
  }
}

/**
 * npm writes a lock file of what it installed as its last action. Contents are compared, not dates: a checkout touches
 * package-lock.json without changing it, and a needless install takes a while.
 */
function isInstalled() {
  const installed = readPackages("node_modules/.package-lock.json");
  const wanted = readPackages("package-lock.json");
  if (!installed || !wanted) return false;
  return Object.entries(wanted).every(([path, { version, optional, devOptional }]) => {
    if (path === "") return true;
    // Packages for other platforms are in the lock file and never installed.
    if (!installed[path]) return Boolean(optional || devOptional);
    return installed[path].version === version;
  });
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), "utf8")).packages;
  } catch {
    return undefined;
  }
}
