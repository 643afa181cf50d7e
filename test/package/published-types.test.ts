/** What the built declarations show to users of the package: the public members, and no internal ones. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

const hidden = [
  "pawl.register",
  "pawl.registration",
  "pawl.addAdopter",
  "pawl.closeClient",
  "pawl.store",
  "pawl.log",
  "pawl.runtime",
  "pawl.ids",
  "worker.adopt",
  "worker.canAdopt",
  "worker.runOneStep",
  "worker.runUntilIdle",
  "worker.startDriven",
  "worker.lookForVanishedJobs",
  "graph.frozen",
];

const shown = [
  "pawl.start",
  "pawl.worker",
  "pawl.close",
  "worker.start",
  "worker.stop",
  "graph.node",
  "new Pawl(store)",
  "new Pawl(store, console)",
];

const beginning = [
  'import { type GraphBuilder, Pawl, type Store, type Worker } from "pawl";',
  "declare const pawl: Pawl, worker: Worker, graph: GraphBuilder, store: Store;",
];
const lines = [...beginning, ...[...hidden, ...shown, "new Pawl(store, console, null)"].map((one) => `${one};`)];

// The folder is within the repository, so that the types of Node resolve, but where no other tool looks.
const cache = join(root, "node_modules/.cache");
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "pawl-published-types-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let said: string;

beforeAll(async () => {
  const config = join(folder, "tsconfig.json");
  const paths = { pawl: [join(root, "dist/index.d.ts")] };
  // The declarations themselves are also checked: none may refer to a member that was removed from another.
  const compilerOptions = { paths, skipLibCheck: false };
  writeFileSync(join(folder, "program.mts"), lines.join("\n"));
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.mts"] }));
  const args = [join(root, "node_modules/.bin/tsc"), "-p", config, "--pretty", "false"];
  const result = await promisify(execFile)(process.execPath, args, { cwd: folder }).catch((error) => error);
  said = String(result.stdout);
});

const compilerErrorsFor = (code: string) =>
  said.split("\n").filter((line) => line.includes(`program.mts(${lines.indexOf(`${code};`) + 1},`));

test.each(hidden)("%s is not declared", (member) => {
  const [, name] = member.split(".");
  expect(compilerErrorsFor(member)).toEqual([expect.stringContaining(`Property '${name}' does not exist`)]);
});

test.each(shown)("%s is declared", (code) => {
  expect(compilerErrorsFor(code)).toEqual([]);
});

test("the constructor of Pawl takes a store and a logger; all other settings are options of connect()", () => {
  expect(compilerErrorsFor("new Pawl(store, console, null)")).toEqual([
    expect.stringContaining("Expected 1-2 arguments, but got 3."),
  ]);
});

test("the declarations compile on their own", () => {
  const others = said.split("\n").filter((line) => line !== "" && !line.includes("program.mts("));
  expect(others).toEqual([]);
});
