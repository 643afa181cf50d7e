/** Reads what the turns of claimed runs need: logs, inboxes, and which of the runs have lost their last owner. */
import { withoutSeenVersion } from "../../core/run/parking-note.js";
import { emptyList } from "../../core/run/transition.js";
import type { ClaimedTask, InboxRow, Store } from "../../store/contract/store.js";
import type { TurnSnapshot } from "../turn/turn-host.js";
import { beginGathered } from "./begin-gathered.js";
import { deliveriesAfterLoss, findLateReleases, hasStaleNote } from "./late-releases.js";

export interface ClaimOrigin {
  /** The store's time at the claim. */
  readonly claimedAt: number;
  /** Whether the runs had no owner before; otherwise the session has owned them, and their logs may have grown since they were parked. */
  readonly wereUnowned: boolean;
}

/** Reads for all runs at once. */
export async function readClaimed(
  store: Store,
  tasks: readonly ClaimedTask[],
  { claimedAt, wereUnowned }: ClaimOrigin,
): Promise<readonly TurnSnapshot[]> {
  const ids = tasks.map((task) => task.run.id);
  const idsWithMessages = tasks.filter((task) => task.pendingMessages > 0).map((task) => task.run.id);
  const [logs, inboxes, begunRuns] = await Promise.all([
    store.logs(ids),
    idsWithMessages.length > 0 ? store.inbox(idsWithMessages) : new Map<string, readonly InboxRow[]>(),
    beginGathered(store, tasks),
  ]);
  const lateReleases = await findLateReleases(store, wereUnowned ? tasks : emptyList, logs);
  return tasks.map((task) => {
    const { id } = task.run;
    const run = begunRuns.get(id) ?? task.run;
    // Whether the session has lost such a run and claimed it again is unknown. Calling the code is safe in both cases.
    const mustCallCode = !wereUnowned && hasStaleNote(run, logs);
    return {
      ...task,
      run: mustCallCode ? { ...run, waiting: withoutSeenVersion(run.waiting) } : run,
      deliveries: lateReleases.has(id) ? deliveriesAfterLoss : task.deliveries,
      log: logs.get(id) ?? emptyList,
      inbox: inboxes.get(id) ?? emptyList,
      claimedAt,
    };
  });
}
