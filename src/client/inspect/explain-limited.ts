/** Explains why a run that waits for slots of limits is not admitted. */
import { laneOf } from "../../core/limits/lane.js";
import type { Store, TaskRecord } from "../../store/contract/store.js";
import type { Explanation } from "./explanation.js";

const maxHolders = 5;
const maxWaiting = 1_000;

/** Returns null if all its limits have a free slot: then it only waits for a worker. */
export async function explainLimited(store: Store, task: TaskRecord, since: Date | null): Promise<Explanation | null> {
  if (task.classId === undefined) return null;
  const [runClass] = await store.limits.classes({ ids: [task.classId] }, 1);
  if (runClass === undefined || runClass.blockedOn === null) return null;
  const lane = runClass.blockedOn;
  const { limit: name, key } = laneOf(lane);
  const settings = (await store.limits.list()).find((candidate) => candidate.name === name);
  const slots = await store.limits.slots({ lane }, (settings?.concurrency ?? 0) + 1);
  const waiting = (await store.limits.waiting([task.classId], maxWaiting)).get(task.classId) ?? 0;
  const holders = slots.slice(0, maxHolders).map(({ runId }) => runId);
  const others = slots.length - holders.length;
  const sinceWhen = since === null ? "It is due" : `It has been due since ${since.toISOString()}`;
  const ofKey = key === "" ? "" : ` for the key "${key}"`;
  const heldBy = holders.length === 0 ? "" : `, by ${holders.join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
  const waitingText = waiting > 1 ? ` ${waiting}${waiting === maxWaiting ? " or more" : ""} runs wait like it.` : "";
  const inUse = `${slots.length} of ${settings?.concurrency ?? 0} slots are in use`;
  return {
    because: "limited",
    text: `${sinceWhen}, and waits for a free slot of the limit "${name}"${ofKey}: ${inUse}${heldBy}.${waitingText}`,
    since,
    until: null,
  };
}
