// Part of `npm run check`: the package as it would be published. publint reads package.json and asks whether every file
// that it names exists and is what it says; attw resolves every entry point as TypeScript does and asks whether types and
// code agree.
//
// The package is built and packed in a temporary folder. So the check does not depend on what an earlier build left in
// dist/, and package.json stays as it is, also when the check is interrupted.

import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildDashboard } from "./dashboard.mjs";
import { capture, root, run, tool } from "./run.mjs";

/** The exit code: 0 when both tools find nothing. */
export async function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-check-package-"));
  try {
    const built = await run(tool("tsc"), ["-p", "tsconfig.build.json", "--outDir", join(folder, "dist")]);
    if (built !== 0) return built;
    const hasDashboard = await buildDashboard(["--outDir", join(folder, "dist/dashboard")]);
    if (hasDashboard !== 0) return hasDashboard;
    const tarball = await pack(folder);
    const isSound = await passes(tool("publint"), ["run", tarball, "--strict"]);
    // Pawl has no CommonJS build, so require() and resolution without `exports` are left out (esm-only). The types are
    // in the package: none are looked for on npm.
    const areTypesRight = await passes(tool("attw"), [tarball, "--profile", "esm-only", "--no-definitely-typed"]);
    return isSound && areTypesRight ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints what the program says only when it fails: attw has a table of fifty lines for a package that is fine. */
async function passes(program, args) {
  try {
    await capture(program, args, { cwd: root });
    return true;
  } catch (error) {
    console.error(`${error.stdout ?? ""}${error.stderr || error.message}`);
    return false;
  }
}

/** Packs package.json as `npm pack` publishes it, with the code and without the pages, which neither tool reads. */
async function pack(folder) {
  for (const file of ["package.json", "README.md", "LICENSE"]) cpSync(join(root, file), join(folder, file));
  await capture(process.execPath, [join(root, "scripts/manifest.mjs")], { cwd: folder });
  await capture("npm", ["pack", "--ignore-scripts", "--silent"], { cwd: folder, maxBuffer: 1 << 26 });
  return join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".tgz")),
  );
}
