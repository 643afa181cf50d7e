/** The command that runs one world again, and what it means. */
import { type FaultRates, faultKinds } from "./kernel/faults.js";
import type { SeedOptions } from "./run-seed.js";

export function commandOf({ seed, rates, dropped, withoutFaults, maxFaults }: SeedOptions): string {
  const often = rates === undefined ? "" : ` --rates ${formatRates(rates)}`;
  const drop = dropped === undefined || dropped.size === 0 ? "" : ` --drop ${[...dropped].join()}`;
  const without =
    withoutFaults === undefined || withoutFaults.size === 0 ? "" : ` --without ${[...withoutFaults].join()}`;
  const most = maxFaults === undefined ? "" : ` --max-faults ${maxFaults}`;
  return `npm run simulate -- --seed ${seed}${often}${drop}${without}${most} --trace`;
}

/** The options of `npm run simulate` that `commandOf` writes, as `parseArgs` has read them. */
export interface SeedArguments {
  readonly seed: string;
  readonly rates?: string | undefined;
  readonly drop?: string | undefined;
  readonly without?: string | undefined;
  readonly "max-faults"?: string | undefined;
}

export function seedOptionsOf(values: SeedArguments): SeedOptions {
  const { seed, rates, drop, without, "max-faults": most } = values;
  return {
    seed: Number(seed),
    ...(rates === undefined ? {} : { rates: ratesOf(rates) }),
    ...(drop === undefined ? {} : { dropped: new Set(drop.split(",")) }),
    ...(without === undefined ? {} : { withoutFaults: new Set(without.split(",")) }),
    ...(most === undefined ? {} : { maxFaults: Number(most) }),
  };
}

const formatRates = (rates: FaultRates): string =>
  Object.entries(rates)
    .map(([kind, rate]) => `${kind}=${rate}`)
    .join();

/** Reads `late-commit=0.1,slow=0.05`. */
export function ratesOf(text: string): FaultRates {
  const pairs = text.split(",").map((pair) => pair.split("="));
  for (const [kind, rate] of pairs)
    if (!faultKinds.some((known) => known === kind) || !(Number(rate) >= 0 && Number(rate) <= 1))
      throw new Error(`"${kind}=${rate}" is no rate: write KIND=SHARE, for example late-commit=0.1.`);
  return Object.fromEntries(pairs.map(([kind, rate]) => [kind, Number(rate)]));
}
