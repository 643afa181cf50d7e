/** The command that runs one world again, and what it means. */
import type { SeedOptions } from "./run-seed.js";

export function commandOf({ seed, dropped, withoutFaults, maxFaults }: SeedOptions): string {
  const drop = dropped === undefined || dropped.size === 0 ? "" : ` --drop ${[...dropped].join()}`;
  const without =
    withoutFaults === undefined || withoutFaults.size === 0 ? "" : ` --without ${[...withoutFaults].join()}`;
  const most = maxFaults === undefined ? "" : ` --max-faults ${maxFaults}`;
  return `npm run simulate -- --seed ${seed}${drop}${without}${most} --trace`;
}

/** The options of `npm run simulate` that `commandOf` writes, as `parseArgs` has read them. */
export interface SeedArguments {
  readonly seed: string;
  readonly drop?: string | undefined;
  readonly without?: string | undefined;
  readonly "max-faults"?: string | undefined;
}

export function seedOptionsOf(values: SeedArguments): SeedOptions {
  const { seed, drop, without, "max-faults": most } = values;
  return {
    seed: Number(seed),
    ...(drop === undefined ? {} : { dropped: new Set(drop.split(",")) }),
    ...(without === undefined ? {} : { withoutFaults: new Set(without.split(",")) }),
    ...(most === undefined ? {} : { maxFaults: Number(most) }),
  };
}
