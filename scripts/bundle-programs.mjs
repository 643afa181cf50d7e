// Bundles the programs that tests start in processes of their own with the built library, so that each process loads a few
// files instead of hundreds: that takes a third of the processor time.

import { readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./run.mjs";

const folders = ["bad-input", "http", "processes", "telemetry"].map((topic) => join(root, "test", topic, "programs"));

/** The names are those of the files of the library: the first of them finds the second beside its own code. */
const library = {
  index: join(root, "dist/index.js"),
  "watchdog-thread": join(root, "dist/watchdog-thread.js"),
};

const alias = {
  "pawl/otel": join(root, "dist/telemetry/otel.js"),
  ...Object.fromEntries(
    ["sqlite", "libsql", "postgres", "mysql"].map((store) => [
      `pawl/${store}`,
      join(root, `dist/store/${store}/index.js`),
    ]),
  ),
  pawl: library.index,
};

/** @returns the folder with the bundled programs, as below `test`, and what removes it */
export async function bundlePrograms() {
  // In the repository, so that the drivers are found.
  const folder = join(root, ".demo", `programs-${process.pid}`);
  const programs = folders.flatMap((from) =>
    readdirSync(from)
      .filter((name) => name.endsWith(".mjs"))
      .map((name) => join(from, name)),
  );
  const named = programs.map((path) => [relative(join(root, "test"), path).replace(/\.mjs$/, ""), path]);
  const { rolldown } = await bundler();
  const bundle = await rolldown({
    input: { ...library, ...Object.fromEntries(named) },
    platform: "node",
    logLevel: "silent",
    external: (id) => !id.startsWith(".") && !id.startsWith("/") && !(id in alias),
    resolve: { alias },
  });
  // The names of classes are those of workflows.
  const names = { chunkFileNames: "[name]-[hash].js", entryFileNames: "[name].js", keepNames: true };
  await bundle.write({ dir: folder, format: "esm", ...names });
  return { folder, remove: async () => rmSync(folder, { recursive: true, force: true }) };
}

/** The bundler that Vitest depends on. */
async function bundler() {
  const ofVitest = createRequire(createRequire(import.meta.url).resolve("vitest/package.json"));
  const ofVite = createRequire(ofVitest.resolve("vite/package.json"));
  return import(pathToFileURL(ofVite.resolve("rolldown")).href);
}
