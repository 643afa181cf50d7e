/** The shrinker, on worlds that are only described: it leaves what the violation needs, and its command says exactly that. */
import { parseArgs } from "node:util";
import { expect, test } from "vitest";
import type { Violation } from "./evidence.js";
import { faultKinds } from "./kernel/faults.js";
import { runSeed, type SeedOptions } from "./run-seed.js";
import { commandOf, seedOptionsOf } from "./seed-command.js";
import { shrink } from "./shrink.js";

const violation: Violation = { invariant: "I7", run: null, text: "" };
const other: Violation = { invariant: "I2", run: null, text: "" };
const items = Array.from({ length: 13 }, (_, index) => `s${index}`);

/** A world with 40 faults that violates I7 only with two items, one kind of fault and at least six faults, and something else otherwise. */
async function described({ dropped, withoutFaults, maxFaults = 40 }: SeedOptions) {
  const hasItems = ["s3", "s11"].every((item) => dropped?.has(item) !== true);
  const isFailing = hasItems && withoutFaults?.has("late-commit") !== true && maxFaults >= 6;
  return { violations: isFailing ? [violation] : [other], faults: Math.min(40, maxFaults) };
}

/** What `npm run simulate` makes of a command that was printed. */
function readCommand(command: string): SeedOptions {
  expect(command).toMatch(/^npm run simulate -- --seed \d+( --(rates|drop|without|max-faults) \S+)* --trace$/);
  const options = {
    seed: string,
    rates: string,
    drop: string,
    without: string,
    "max-faults": string,
    trace: { type: "boolean" },
  } as const;
  const { values } = parseArgs({ args: command.split(" ").slice(4), options });
  return seedOptionsOf({ ...values, seed: values.seed as string });
}
const string = { type: "string" } as const;

test("what the violation does not need is left out, and worlds that violate something else do not count", async () => {
  const smallest = await shrink({ seed: 5, violations: [violation], items }, described);
  expect((await described(smallest)).violations).toEqual([violation]);
  expect(items.filter((item) => !smallest.dropped?.has(item))).toEqual(["s3", "s11"]);
  expect(faultKinds.filter((kind) => !smallest.withoutFaults?.has(kind))).toEqual(["late-commit"]);
  expect(smallest.maxFaults).toBe(6);
});

test("the command says exactly which world failed", async () => {
  const smallest = await shrink({ seed: 5, violations: [violation], items }, described);
  expect(readCommand(commandOf(smallest))).toEqual(smallest);
  expect(readCommand(commandOf({ seed: 12 }))).toEqual({ seed: 12 });
});

test("the command repeats a world with items and faults left out, event by event", async () => {
  const options = {
    ...{ seed: 42, dropped: new Set(["r0", "s1"]), withoutFaults: new Set(["crash", "slow"]), maxFaults: 3 },
    rates: { "late-commit": 0.1 },
  };
  const [first, second] = [await runSeed(options), await runSeed(readCommand(commandOf(options)))];
  expect(first.faults).toBeLessThanOrEqual(3);
  expect(second.hash).toBe(first.hash);
});
