/**
 * Runs that a late commit has released. A server may execute a park long after its connection has failed, when the worker has
 * parked the run by a second try, claimed it again and written to its log. The run then has no owner although its last one did
 * not park it, and its parking note is older than its log. The next owner must treat it like the run of a worker that died: what
 * had begun is abandoned, and the code is called. Otherwise a step that was running would look like one whose body waits.
 */
import { isOlderThanLog } from "../../core/run/parking-note.js";
import type { ClaimedTask, RunRecord, Store, StoredEvent } from "../../store/contract/store.js";

type Logs = ReadonlyMap<string, readonly StoredEvent[]>;

const noRuns: ReadonlySet<string> = new Set();

/** Whether an owner has written to the log since the run was parked. */
export const hasStaleNote = ({ id, waiting }: RunRecord, logs: Logs): boolean =>
  isOlderThanLog(waiting, logs.get(id)?.at(-1)?.seq ?? 0);

/** @param tasks a claim has returned them, so no other process changes their rows and logs */
export async function findLateReleases(
  store: Pick<Store, "runsById">,
  tasks: readonly ClaimedTask[],
  logs: Logs,
): Promise<ReadonlySet<string>> {
  const isStale = (run: RunRecord) => hasStaleNote(run, logs);
  // The owner of a task with several claims has died, which the number of claims says already.
  const suspects = tasks.filter(({ run, deliveries }) => deliveries === 1 && isStale(run));
  if (suspects.length === 0) return noRuns;
  // A database may claim a task and read its run as of an instant before the last park, so the rows are read again.
  const rows = await store.runsById(suspects.map(({ run }) => run.id));
  return new Set(rows.filter(isStale).map(({ id }) => id));
}

/** The number of claims of a run without an owner that was not parked by its last owner. */
export const deliveriesAfterLoss = 2;
