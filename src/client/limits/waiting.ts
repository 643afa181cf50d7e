/** Counts what waits for slots, without reading more than a bounded number of classes and tasks. */
import type { ClassRecord } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";

/** Of each class, and of each group of classes, at most this many runs are counted. */
export const maxWaiting = 1_000;
/** Classes that no admission has looked at yet. There are few as long as workers live. */
const maxOpenClasses = 200;

export interface WaitingCount {
  readonly count: number;
  readonly isCapped: boolean;
}

/** The classes that are about to be looked at, which wait for all of their lanes. */
export const readOpenClasses = (store: Store): Promise<readonly ClassRecord[]> =>
  store.limits.blockedClasses({ nothing: true }, maxOpenClasses);

export const mayHaveMore = (open: readonly ClassRecord[]): boolean => open.length >= maxOpenClasses;

/**
 * Counts the waiting runs of these classes by group.
 *
 * @param groupOf the group that a run counts for when it waits for this lane; null: it is not counted
 */
export async function countWaiting(
  store: Store,
  classes: readonly ClassRecord[],
  groupOf: (lane: string) => string | null,
): Promise<ReadonlyMap<string, WaitingCount>> {
  const groupsById = new Map<string, readonly string[]>();
  for (const { id, lanes, blockedOn } of classes) {
    const groups = (blockedOn === null ? lanes : [blockedOn]).flatMap((lane) => groupOf(lane) ?? []);
    if (groups.length > 0) groupsById.set(id, [...new Set(groups)]);
  }
  const counts = new Map<string, WaitingCount>();
  if (groupsById.size === 0) return counts;
  const waiting = await store.limits.waiting([...groupsById.keys()], maxWaiting);
  for (const [id, groups] of groupsById) {
    const ofClass = waiting.get(id) ?? 0;
    for (const group of groups) counts.set(group, added(counts.get(group), ofClass));
  }
  return counts;
}

export const nothingWaits: WaitingCount = { count: 0, isCapped: false };

function added({ count, isCapped }: WaitingCount = nothingWaits, further: number): WaitingCount {
  return { count: count + further, isCapped: isCapped || further >= maxWaiting };
}
