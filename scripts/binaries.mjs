// Server programs on this machine: where they are, and how root installs them from the system's packages.

import { accessSync, constants, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { capture } from "./run.mjs";

export const isRoot = process.getuid?.() === 0;

export const pathFolders = () => (process.env.PATH ?? "").split(delimiter).filter(Boolean);

/** `parent`/<name>/`rest` for each name that matches, newest version first. */
export function childFolders(parent, pattern, rest) {
  if (!existsSync(parent)) return [];
  const names = readdirSync(parent).filter((name) => pattern.test(name));
  return names.sort((a, b) => b.localeCompare(a, "en", { numeric: true })).map((name) => join(parent, name, rest));
}

/** The programs of the first folder that has them all: `{ server: ["mariadbd", "mysqld"] }` → `{ server: path }`. */
export function beside(folders, programs) {
  for (const folder of folders) {
    const found = Object.entries(programs).map(([role, names]) => [
      role,
      names.map((name) => join(folder, name)).find(isExecutable),
    ]);
    if (found.every(([, path]) => path)) return Object.fromEntries(found);
  }
  return undefined;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The server's programs, installed first if they are missing and installing is allowed. Otherwise returns `{ why }`.
 */
export async function findOrInstall(engine) {
  const here = engine.findBinaries();
  if (here) return { binaries: here };
  if (engine.install) return installByItself(engine);
  if (!isRoot) return { why: "it is not installed, and only root may install it" };
  if (!beside(pathFolders(), { apt: ["apt-get"] })) {
    return { why: "it is not installed, and there is no apt-get to install it with" };
  }
  let why;
  for (const packages of [engine.packages, engine.otherPackages]) {
    if (packages === undefined) continue;
    try {
      await installPackages(packages);
      const binaries = engine.findBinaries();
      if (binaries) return { binaries };
      why = `${packages.join(" ")} is installed, but its program is not found`;
    } catch (error) {
      why = `apt-get could not install ${packages.join(" ")} (${lastLine(error.stderr ?? error.message)})`;
    }
  }
  return { why };
}

/** For an engine that does not come from the system's packages. */
async function installByItself(engine) {
  const why = await engine
    .install()
    .catch((error) => `it could not be installed (${lastLine(error.stderr || error.message)})`);
  if (why) return { why };
  const binaries = engine.findBinaries();
  return binaries ? { binaries } : { why: "it was installed, but its program is not found" };
}

/** Installs packages without letting them start a service: Debian asks policy-rc.d, and 101 means "do not". */
async function installPackages(packages) {
  console.log(`Installing ${packages.join(" ")} from the system's packages …`);
  const policy = "/usr/sbin/policy-rc.d";
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeout: 600_000, maxBuffer: 1 << 26 };
  try {
    // An outdated package list still works if the update fails.
    await capture("apt-get", ["update"], options).catch(() => {});
    await capture("apt-get", ["install", "-y", "--no-install-recommends", ...packages], options);
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}

const lastLine = (text) => text.trim().split("\n").at(-1);
