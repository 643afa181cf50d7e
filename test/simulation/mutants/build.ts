/**
 * Compiles the simulation, and for each mutant a copy of it. What a mutant does not change are links to the compiled files, so that a
 * copy costs milliseconds.
 */
import { execFile } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { applyMutant } from "./apply.js";
import type { Mutant } from "./mutant.js";

/**
 * @param folder is emptied. It must be inside of the repository, where the dependencies are found.
 * @returns by name of a mutant: the folder with its compiled files
 */
export async function buildMutants(
  root: string,
  folder: string,
  mutants: readonly Mutant[],
): Promise<ReadonlyMap<string, string>> {
  rmSync(folder, { recursive: true, force: true });
  const base = join(folder, "base");
  await compile(root, join(folder, "base.json"), {
    compilerOptions: { rootDir: root, outDir: base, sourceMap: false },
    include: ["src", "test/simulation", "test/support/seeded-random.ts"].map((part) => join(root, part)),
    exclude: [join(root, "**/*.test.ts")],
  });
  const sources = join(folder, "sources");
  const changed = mutants.flatMap((mutant) =>
    [...applyMutant(root, mutant)].map(([file, text]) => ({ path: join(mutant.name, file), text })),
  );
  for (const { path, text } of changed) write(join(sources, path), text);
  const compiled = join(folder, "compiled");
  // Types are not checked, so each file is compiled without those that it imports.
  await compile(root, join(folder, "changed.json"), {
    compilerOptions: { rootDir: sources, outDir: compiled, sourceMap: false, noResolve: true, types: [] },
    include: [],
    files: changed.map(({ path }) => join(sources, path)),
  });
  const files = readdirSync(base, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const folders = new Map(mutants.map(({ name }) => [name, join(folder, "mutants", name)]));
  for (const copy of folders.values()) {
    for (const { parentPath, name } of files) {
      const target = join(copy, join(parentPath, name).slice(base.length));
      mkdirSync(dirname(target), { recursive: true });
      linkSync(join(parentPath, name), target);
    }
  }
  // A renamed file replaces the link. Writing through it would change the file of all mutants.
  for (const { path } of changed) {
    const file = path.replace(/\.ts$/, ".js");
    renameSync(join(compiled, file), join(folder, "mutants", file));
  }
  return folders;
}

async function compile(root: string, file: string, config: object): Promise<void> {
  write(file, JSON.stringify({ extends: join(root, "tsconfig.simulation.json"), ...config }));
  const tsc = join(root, "node_modules/.bin/tsc");
  try {
    await promisify(execFile)(tsc, ["-p", file, "--noCheck"], { encoding: "utf8" });
  } catch (error) {
    throw new Error(
      `The mutants cannot be compiled:\n${(error as { stdout?: string }).stdout?.slice(0, 2_000) ?? error}`,
    );
  }
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
