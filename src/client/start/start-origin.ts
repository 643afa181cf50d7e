/** What the row of a run says about its start: who started it and why, and for which run it waits. */
import type { StartOrigin } from "../../core/run/stored-schema.js";
import type { RunRecord, Store } from "../../store/contract/store.js";

/** An unreadable text is treated as missing, because all but `after` is only for display. */
export function originOf({ startedBy }: Pick<RunRecord, "startedBy">): StartOrigin {
  if (startedBy === undefined) return {};
  try {
    return JSON.parse(startedBy) as StartOrigin;
  } catch {
    return {};
  }
}

/**
 * The run for whose end this run waits: the nearest open one of those that were queued before it. A run that was canceled
 * before it began is passed over. null if the run need not wait any more.
 */
export async function findRunBefore(store: Store, run: RunRecord): Promise<RunRecord | null> {
  for (let { after } = originOf(run); after !== undefined; ) {
    const before = await store.run(after);
    // A run that has begun began after the end of all runs before it.
    if (before === null || (before.finishedAt !== null && before.startedAt !== null)) return null;
    if (before.finishedAt === null) return before;
    ({ after } = originOf(before));
  }
  return null;
}
