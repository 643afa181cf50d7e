/**
 * Runs that have gathered starts begin: their rows get all of their input. The run of a claim may lack the last starts, because
 * a database may claim a task and read its run as of an instant before they were added. Since the claim, none is added.
 */
import { openGatheringOf } from "../../core/gathering/plan-gathering.js";
import type { AdmittedTask } from "../../store/contract/limits.js";
import type { ClaimedTask, Store } from "../../store/contract/store.js";

type Claimed = ClaimedTask | AdmittedTask;

export const mustBegin = ({ run }: Claimed): boolean => openGatheringOf(run.schedule) !== null;

export async function beginGathered(store: Store, tasks: readonly Claimed[]): Promise<readonly Claimed[]> {
  const runs = await store.gatherings.begin(tasks.map(({ run }) => run.id));
  return tasks.flatMap((task) => {
    const begun = runs.get(task.run.id);
    return begun === undefined ? [] : [{ ...task, run: { ...task.run, ...begun } }];
  });
}
