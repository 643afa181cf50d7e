/**
 * Runs that have gathered starts begin: their rows get all of their input. The run of a claim may lack the last starts, because
 * a database may claim a task and read its run as of an instant before they were added. Since the claim, none is added.
 */
import { openGatheringOf } from "../../core/gathering/plan-gathering.js";
import type { ClaimedTask, RunRecord, Store } from "../../store/contract/store.js";

export const mustBegin = ({ run }: Pick<ClaimedTask, "run">): boolean => openGatheringOf(run.schedule) !== null;

const noRuns: ReadonlyMap<string, RunRecord> = new Map();

/** @returns the runs that begin; usually there are none */
export async function beginGathered(
  store: Store,
  tasks: readonly ClaimedTask[],
): Promise<ReadonlyMap<string, RunRecord>> {
  const gathered = tasks.filter(mustBegin);
  if (gathered.length === 0) return noRuns;
  const begun = await store.gatherings.begin(gathered.map(({ run }) => run.id));
  return new Map(gathered.map(({ run }) => [run.id, { ...run, ...begun.get(run.id) }]));
}
