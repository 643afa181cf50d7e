/** A program that is bundled with Pawl and its driver into one file works, in either module format. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { emptyDatabase, isLeftOut } from "../support/databases.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pawl-bundle-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The bundler that vitest depends on. */
async function bundler(): Promise<{
  rolldown(options: object): Promise<{ write(options: object): Promise<unknown> }>;
}> {
  const ofVitest = createRequire(createRequire(import.meta.url).resolve("vitest/package.json"));
  const ofVite = createRequire(ofVitest.resolve("vite/package.json"));
  return import(pathToFileURL(ofVite.resolve("rolldown")).href);
}

writeFileSync(
  join(folder, "app.mjs"),
  `import { connect, workflow } from "pawl";
   const hi = workflow("hi", (ctx) => ctx.step("say", () => "hi"));
   export async function main() {
     const pawl = await connect(process.argv[2]);
     await pawl.worker({ workflows: [hi] }).start();
     const run = await pawl.start(hi);
     console.log(await run.result());
     await pawl.close();
   }
   void main();`,
);

test.each([
  ["esm", "app-bundle.mjs"],
  ["cjs", "app-bundle.cjs"],
] as const)("a bundle in the format %s works", async (format, file) => {
  const database = isLeftOut("postgres") ? null : await emptyDatabase("postgres");
  const { rolldown } = await bundler();
  const bundle = await rolldown({
    input: join(folder, "app.mjs"),
    platform: "node",
    logLevel: "silent",
    external: ["better-sqlite3", "libsql", "mysql2/promise", "pg-native"],
    resolve: { alias: { pawl: join(root, "dist/index.js") } },
  });
  const out = join(folder, format);
  await bundle.write({ dir: out, format, entryFileNames: file, codeSplitting: false });
  for (const url of ["memory:", ...(database === null ? [] : [database.url])]) {
    const { stdout } = await promisify(execFile)(process.execPath, [join(out, file), url]);
    expect(stdout).toBe("hi\n");
  }
  await database?.drop();
});

test("a driver that is neither bundled nor installed is named in the error", async () => {
  const { rolldown } = await bundler();
  const bundle = await rolldown({
    input: join(folder, "app.mjs"),
    platform: "node",
    logLevel: "silent",
    external: ["better-sqlite3", "libsql", "mysql2/promise", "pg"],
    resolve: { alias: { pawl: join(root, "dist/index.js") } },
  });
  await bundle.write({ dir: folder, format: "esm", entryFileNames: "alone.mjs", codeSplitting: false });
  const run = promisify(execFile)(process.execPath, [join(folder, "alone.mjs"), "postgres://localhost/none"]);
  await expect(run).rejects.toThrow("PostgreSQL needs the driver `pg`, which is not installed; run: npm install pg");
});
