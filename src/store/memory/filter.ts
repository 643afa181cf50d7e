/** Which runs match a filter, and the order of lists. */
import type { RunFilter, RunRecord } from "../contract/store.js";

export function matches(run: RunRecord, filter: RunFilter): boolean {
  return (
    (filter.workflow === undefined || run.workflow === filter.workflow) &&
    (filter.status === undefined || run.status === filter.status) &&
    (filter.active === undefined || filter.active === (run.finishedAt === null)) &&
    (filter.heroType === undefined || run.heroType === filter.heroType) &&
    (filter.heroId === undefined || run.heroId === filter.heroId) &&
    (filter.startKey === undefined || run.startKey === filter.startKey) &&
    (filter.tag === undefined || run.tags.includes(filter.tag)) &&
    (filter.parentId === undefined || run.parentId === filter.parentId) &&
    (filter.createdAfter === undefined || run.createdAt >= filter.createdAfter) &&
    (filter.createdBefore === undefined || run.createdAt < filter.createdBefore)
  );
}

export function newestFirst(a: { createdAt: number; id: string }, b: { createdAt: number; id: string }): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}
