/** Runs in the compiled copy of a mutant: simulates seeds until one is found that violates an invariant, and tells its parent process. */
import type { FaultRates } from "../kernel/faults.js";
import { runSeed } from "../run-seed.js";
import { commandOf } from "../seed-command.js";
import { shrink } from "../shrink.js";

export interface Find {
  readonly seed: number;
  readonly invariants: readonly string[];
  readonly text: string;
  /** The command that the simulation prints for the smallest world that fails; null unless it was asked for. */
  readonly command: string | null;
}

export interface HuntOptions {
  readonly from: number;
  readonly to: number;
  readonly rates: FaultRates;
  readonly shrinks: boolean;
}

async function hunt({ from, to, rates, shrinks }: HuntOptions): Promise<Find | null> {
  for (let seed = from; seed <= to; seed += 1) {
    const result = await runSeed({ seed, rates });
    if (seed % 20 === 0) process.send?.({ kind: "progress", seed });
    const [violation] = result.violations;
    if (violation === undefined) continue;
    const invariants = [...new Set(result.violations.map(({ invariant }) => invariant))];
    const command = shrinks ? commandOf(await shrink(result)) : null;
    return { seed, invariants, text: `${violation.invariant}: ${violation.text}`, command };
  }
  return null;
}

process.once("message", (options: HuntOptions) => {
  void hunt(options).then((find) => process.send?.({ kind: "end", find }, () => process.exit(0)));
});
