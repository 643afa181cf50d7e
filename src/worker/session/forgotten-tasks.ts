/** Runs that a session owns without knowing it, because the answer to a claim was lost. */
import type { AdmittedTask, SlotRecord } from "../../store/contract/limits.js";
import type { RunRecord, TaskRecord } from "../../store/contract/store.js";

export function toAdmittedTasks(
  tasks: readonly TaskRecord[],
  runs: readonly RunRecord[],
  slots: readonly SlotRecord[],
): AdmittedTask[] {
  const taskOf = new Map(tasks.map((task) => [task.runId, task]));
  return runs.map((run): AdmittedTask => {
    const { route, deliveries, pendingMessages } = taskOf.get(run.id) as TaskRecord;
    const ofRun = slots.filter(({ runId, node }) => runId === run.id && node === "");
    const lanes = ofRun.map(({ lane }) => lane);
    const openLanes = ofRun.filter(({ owner }) => owner === null).map(({ lane }) => lane);
    return { run, route, deliveries, pendingMessages, isFresh: false, lanes, openLanes };
  });
}
