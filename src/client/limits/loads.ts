/** How much of limits is used, of all their lanes together. */
import { laneOf } from "../../core/limits/lane.js";
import type { Store } from "../../store/contract/store.js";
import type { LimitLoad } from "./limit-info.js";
import { countWaiting, mayHaveMore, nothingWaits, readOpenClasses } from "./waiting.js";

const maxSlots = 10_000;
/** How many classes are read that are blocked on lanes of these limits, but at least some of each limit. */
const maxClasses = 500;
const minClassesPerLimit = 20;

export async function readLoads(store: Store, names: readonly string[]): Promise<ReadonlyMap<string, LimitLoad>> {
  if (names.length === 0) return new Map();
  const classesPerLimit = Math.max(minClassesPerLimit, Math.floor(maxClasses / names.length));
  const [usage, blocked, open] = await Promise.all([
    store.limits.usage(names, maxSlots),
    store.limits.blockedClasses({ limits: names }, classesPerLimit),
    readOpenClasses(store),
  ]);
  const isAsked = new Set(names);
  const limitOf = (lane: string) => {
    const { limit } = laneOf(lane);
    return isAsked.has(limit) ? limit : null;
  };
  const waiting = await countWaiting(store, [...blocked, ...open], limitOf);
  const classCounts = new Map<string, number>();
  for (const { blockedOn } of blocked) {
    const limit = laneOf(blockedOn as string).limit;
    classCounts.set(limit, (classCounts.get(limit) ?? 0) + 1);
  }
  return new Map(
    usage.map(({ name, inUse, waitingSteps, isCapped }): readonly [string, LimitLoad] => {
      const runs = waiting.get(name) ?? nothingWaits;
      const hasMoreClasses = (classCounts.get(name) ?? 0) >= classesPerLimit;
      return [
        name,
        {
          inUse,
          inUseCapped: isCapped,
          waiting: runs.count + waitingSteps,
          waitingCapped: runs.isCapped || hasMoreClasses || isCapped || mayHaveMore(open),
        },
      ];
    }),
  );
}
