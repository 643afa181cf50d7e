/** Runs in the compiled simulation: simulates the kept seed of each bug with the code that has the bug, and tells its parent process what that violates. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { FaultRates } from "../kernel/faults.js";

export interface KeptSeed {
  readonly name: string;
  readonly seed: number;
  readonly rates: FaultRates;
  /** The compiled files with the bug. */
  readonly folder: string;
}

export interface KeptFind {
  readonly name: string;
  readonly invariants: readonly string[];
}

async function findKept(seeds: readonly KeptSeed[]): Promise<readonly KeptFind[]> {
  const finds: KeptFind[] = [];
  for (const { name, seed, rates, folder } of seeds) {
    const file = pathToFileURL(join(folder, "test/simulation/run-seed.js")).href;
    const { runSeed } = (await import(file)) as typeof import("../run-seed.js");
    const { violations } = await runSeed({ seed, rates });
    finds.push({ name, invariants: [...new Set(violations.map(({ invariant }) => invariant))] });
  }
  return finds;
}

process.once("message", (seeds: readonly KeptSeed[]) => {
  void findKept(seeds).then((finds) => process.send?.(finds, () => process.exit(0)));
});
