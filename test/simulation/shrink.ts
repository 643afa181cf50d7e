/** Makes a failing world smaller: fewer runs, commands and disasters, fewer kinds of faults, fewer faults, as long as it still violates the same invariant. */
import { faultKinds } from "./kernel/faults.js";
import { runSeed, type SeedOptions, type SeedResult } from "./run-seed.js";

/** Each try runs a world. */
const mostTries = 200;

/** @param run runs a world; tests give another one */
export async function shrink(
  failing: Pick<SeedResult, "seed" | "rates" | "violations" | "items">,
  run: (options: SeedOptions) => Promise<Pick<SeedResult, "violations" | "faults">> = runSeed,
): Promise<SeedOptions> {
  const invariants = new Set(failing.violations.map(({ invariant }) => invariant));
  const { seed, rates } = failing;
  let smallest: SeedOptions = rates === undefined ? { seed } : { seed, rates };
  let tries = 0;
  const attempt = async (options: SeedOptions) => {
    tries += 1;
    if (tries > mostTries) return null;
    const result = await run(options);
    return result.violations.some(({ invariant }) => invariants.has(invariant)) ? result : null;
  };
  const keepIfFailing = async (options: SeedOptions) => {
    const isFailing = (await attempt(options)) !== null;
    if (isFailing) smallest = options;
    return isFailing;
  };
  // Half of the items at once, then quarters, then one by one.
  let items = [...failing.items];
  for (let size = Math.ceil(items.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < items.length; ) {
      const part = items.slice(at, at + size);
      if (await keepIfFailing({ ...smallest, dropped: new Set([...(smallest.dropped ?? []), ...part]) }))
        items = items.filter((item) => !part.includes(item));
      else at += size;
    }
  }
  for (const kind of faultKinds)
    await keepIfFailing({ ...smallest, withoutFaults: new Set([...(smallest.withoutFaults ?? []), kind]) });
  // The smallest number of faults; more faults need not fail, so this is a search from above.
  let most = (await attempt(smallest))?.faults ?? 0;
  while (most > 0) {
    const fewer = await firstFailing([0, most >> 1, (most * 3) >> 2, most - 1], (count) =>
      keepIfFailing({ ...smallest, maxFaults: count }),
    );
    if (fewer === null || fewer >= most) break;
    most = fewer;
  }
  return smallest;
}

async function firstFailing(
  counts: readonly number[],
  isFailing: (count: number) => Promise<boolean>,
): Promise<number | null> {
  for (const count of new Set(counts)) if (await isFailing(count)) return count;
  return null;
}
