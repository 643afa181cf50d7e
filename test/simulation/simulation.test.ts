/** The first seeds, and that a seed determines its world. `npm run simulate` runs more. */
import { expect, test } from "vitest";
import { addCounts, type Counts } from "./coverage.js";
import { runSeed } from "./run-seed.js";
import { commandOf } from "./seed-command.js";

const seeds = 300;

test(`${seeds} simulated worlds keep every promise, and the faults hit what they are for`, async () => {
  const coverage: Counts = {};
  const failures: string[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const result = await runSeed({ seed });
    addCounts(coverage, result.coverage);
    for (const { invariant, run, text } of result.violations)
      failures.push(`${invariant} ${run ?? ""} ${text}\n  ${commandOf({ seed })}`);
  }
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

test("a seed determines its world, whatever ran before it in the same process", async () => {
  for (const seed of [7, 42, 96]) {
    const first = await runSeed({ seed, keepsTrace: true });
    await runSeed({ seed: seed + 1 });
    const second = await runSeed({ seed, keepsTrace: true });
    expect(second.trace).toEqual(first.trace);
    expect(second.hash).toBe(first.hash);
  }
});
