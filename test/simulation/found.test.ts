/**
 * The seeds of the worlds that have found bugs: with the library as it is they are sound. `npm run test:long` brings each bug back, and its seed
 * must find it. A change of the library or of the simulated workflows may lead a seed past its bug; then
 * `npm run simulate -- --mutants --found` prints another seed.
 */
import { execFile, fork } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sized } from "../support/effort.js";
import { buildMutants } from "./mutants/build.js";
import type { KeptFind, KeptSeed } from "./mutants/find-kept.js";
import { foundBugs } from "./mutants/found-bugs.js";
import { runSeed } from "./run-seed.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
// Not the folder of `npm run simulate`, which may be running.
const folder = join(root, ".simulation", `found-${process.pid}`);
const compiled = (file: string) => join(folder, "base/test/simulation", file);
const broughtBack = foundBugs.slice(0, sized(0, foundBugs.length));
let folders: ReadonlyMap<string, string>;

beforeAll(async () => {
  folders = await buildMutants(root, folder, broughtBack);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(foundBugs)("seed $seed is sound without the bug $name", async ({ seed, rates }) => {
  expect((await runSeed({ seed, rates })).violations).toEqual([]);
});

if (broughtBack.length > 0)
  test("each kept seed finds its bug when that is brought back", async () => {
    const seeds = broughtBack.map(
      ({ name, seed, rates }): KeptSeed => ({ name, seed, rates, folder: folders.get(name) as string }),
    );
    const finds = await findKept(seeds);
    const lost = finds.filter(({ invariants }) => invariants.length === 0).map(({ name }) => name);
    expect(lost, "These seeds find nothing; `npm run simulate -- --mutants --found` prints others.").toEqual([]);
    expect(finds).toHaveLength(foundBugs.length);
  });

test("two processes print the same trace of a seed, to the byte", async () => {
  const trace = async (seed: number) => {
    const args = [compiled("main.js"), "--seed", String(seed), "--trace"];
    return (await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 28 })).stdout;
  };
  for (const seed of [3, 204]) {
    const [first, second] = await Promise.all([trace(seed), trace(seed)]);
    expect(first.length).toBeGreaterThan(10_000);
    expect(second).toBe(first);
  }
});

function findKept(seeds: readonly KeptSeed[]): Promise<readonly KeptFind[]> {
  const child = fork(compiled("mutants/find-kept.js"));
  return new Promise((resolve, reject) => {
    child.once("message", (finds) => resolve(finds as readonly KeptFind[]));
    child.once("exit", (code) => reject(new Error(`The process of the kept seeds ended with code ${code}.`)));
    child.send(seeds);
  });
}
