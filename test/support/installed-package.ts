/** The package as users get it: packed, and unpacked in a project of its own. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);

/** What the project has besides the package, without asking a registry. */
const others = [
  "better-sqlite3",
  "bindings",
  "file-uri-to-path",
  "typescript",
  "@types/node",
  "undici-types",
  "@swc/core",
];

/**
 * Installs the package into `project`. It is packed from a copy in `folder`, because package.json is replaced while
 * packing.
 */
export async function installPackage(folder: string, project: string): Promise<void> {
  const copy = join(folder, "copy");
  const installed = join(project, "node_modules/pawl");
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const needed = ["package.json", "README.md", "LICENSE", "scripts", ...files.filter((one) => !one.startsWith("!"))];
  for (const one of needed) cpSync(join(root, one), join(copy, one), { recursive: true });
  await run(process.execPath, ["scripts/manifest.mjs"], { cwd: copy });
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json"], { cwd: copy, maxBuffer: 1 << 26 });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", join(copy, filename), "-C", installed, "--strip-components=1"]);
  await run(process.execPath, ["scripts/manifest.mjs", "restore"], { cwd: copy });
  expect(readFileSync(join(copy, "package.json"), "utf8")).toBe(readFileSync(join(root, "package.json"), "utf8"));
  for (const one of others)
    if (existsSync(join(root, "node_modules", one))) {
      mkdirSync(dirname(join(project, "node_modules", one)), { recursive: true });
      symlinkSync(join(root, "node_modules", one), join(project, "node_modules", one));
    }
  writeFileSync(join(project, "package.json"), '{ "name": "project", "type": "module" }');
}
