/**
 * The first seeds, the seeds of the worlds that have found bugs, and that a seed determines its world. `npm run simulate` runs more.
 *
 * With the library as it is, the kept seeds are sound. `npm run test:long` brings each bug back, and its seed must find it. A change of
 * the library or of the simulated workflows may lead a seed past its bug; then `npm run simulate -- --mutants --found` prints another.
 */
import { execFile, fork } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sized } from "../support/effort.js";
import { addCounts, type Counts } from "./coverage.js";
import { buildMutants } from "./mutants/build.js";
import type { KeptFind, KeptSeed } from "./mutants/find-kept.js";
import { foundBugs } from "./mutants/found-bugs.js";
import type { ChunkResult } from "./progress.js";
import { runSeed } from "./run-seed.js";
import { commandOf } from "./seed-command.js";

const seeds = 300;

const root = fileURLToPath(new URL("../..", import.meta.url));
// Not the folder of `npm run simulate`, which may be running.
const folder = join(root, ".simulation", `test-${process.pid}`);
const base = join(folder, "base");
const compiled = (file: string) => join(base, "test/simulation", file);
const broughtBack = foundBugs.slice(0, sized(0, foundBugs.length));
let folders: ReadonlyMap<string, string>;

// Compiled, and in a process without Vitest, a world takes half of the time.
beforeAll(async () => {
  folders = await buildMutants(root, folder, broughtBack);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(`${seeds} simulated worlds keep every promise, and the faults hit what they are for`, async () => {
  const half = seeds / 2;
  const simulate = (from: number) =>
    answerOf<ChunkResult>("main.js", ["--worker"], { chunk: 0, from, seeds: half, rates: {} });
  const halves = await Promise.all([simulate(1), simulate(half + 1)]);
  const coverage: Counts = {};
  for (const result of halves) addCounts(coverage, result.coverage);
  expect(halves.map((result) => result.seeds)).toEqual([half, half]);
  const failing = halves.flatMap((result) => result.failing);
  const failures = failing.flatMap(({ seed, violations }) =>
    violations.map(({ invariant, run, text }) => `${invariant} ${run ?? ""} ${text}\n  ${commandOf({ seed })}`),
  );
  expect(failures).toEqual([]);
  for (const name of [
    "a call was fenced",
    "a run was reclaimed",
    "a step was retried",
    "a worker lost its lease",
    "a commit failed and was repeated",
  ])
    expect(coverage[name] ?? 0, name).toBeGreaterThan(0);
});

test("the worlds that have found bugs are sound without them", async () => {
  const finds = await findKept(() => base);
  expect(finds).toHaveLength(foundBugs.length);
  expect(finds.filter(({ invariants }) => invariants.length > 0)).toEqual([]);
});

if (broughtBack.length > 0)
  test("each kept seed finds its bug when that is brought back", async () => {
    const finds = await findKept((name) => folders.get(name) as string);
    const lost = finds.filter(({ invariants }) => invariants.length === 0).map(({ name }) => name);
    expect(lost, "These seeds find nothing; `npm run simulate -- --mutants --found` prints others.").toEqual([]);
    expect(finds).toHaveLength(foundBugs.length);
  });

test("a seed determines its world, whatever ran before it in the same process", async () => {
  for (const seed of [7, 42, 96]) {
    const first = await runSeed({ seed, keepsTrace: true });
    await runSeed({ seed: seed + 1 });
    const second = await runSeed({ seed, keepsTrace: true });
    expect(second.trace).toEqual(first.trace);
    expect(second.hash).toBe(first.hash);
  }
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

const findKept = (folderOf: (name: string) => string): Promise<readonly KeptFind[]> => {
  const kept = foundBugs.map(({ name, seed, rates }): KeptSeed => ({ name, seed, rates, folder: folderOf(name) }));
  return answerOf("mutants/find-kept.js", [], kept);
};

/** Sends a message to a process of the compiled simulation, and resolves with its answer. */
function answerOf<Answer>(file: string, args: readonly string[], message: object): Promise<Answer> {
  const child = fork(compiled(file), args);
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => {
      child.kill();
      resolve(answer as Answer);
    });
    child.once("exit", (code) => reject(new Error(`The process of ${file} ended with code ${code}.`)));
    child.send(message);
  });
}
