/** Explains that a run has not begun because it gathers starts. */
import { openGatheringOf } from "../../core/gathering/plan-gathering.js";
import type { RunRecord, TaskRecord } from "../../store/contract/store.js";
import type { Explanation } from "./explanation.js";

/** Returns null if the run gathers nothing. */
export function explainGathering(run: RunRecord, { dueAt }: TaskRecord): Explanation | null {
  const gathering = openGatheringOf(run.schedule);
  if (gathering === null || dueAt === null) return null;
  const { gathering: by, key, calls, firstAt, list } = gathering;
  const begins = new Date(dueAt);
  const ofKey = key === "" ? "" : ` with the key "${key}"`;
  const soFar = `${calls} so far`;
  const text =
    by === "batch"
      ? `It gathers starts${ofKey}, ${soFar}, and begins at ${begins.toISOString()}, or as soon as there are ${list?.size ?? 0}.`
      : `It is debounced: it gathers starts${ofKey}, ${soFar}, and begins at ${begins.toISOString()} unless there is another.`;
  return { because: "gathering", text, since: new Date(firstAt), until: begins };
}
