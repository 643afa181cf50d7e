/** Explains why a run has not begun that waits for the end of the run with the same key (`onConflict`). */
import type { RunRecord, Store, TaskRecord } from "../../store/contract/store.js";
import { findRunBefore } from "../start/start-origin.js";
import type { Explanation } from "./explanation.js";

/** Returns null if the run does not wait for another run. */
export async function explainQueued(store: Store, run: RunRecord, task: TaskRecord): Promise<Explanation | null> {
  if (task.dueAt !== null) return null;
  const before = await findRunBefore(store, run);
  if (before === null) return null;
  const text = `It has not started: it begins when run ${before.id} has ended, which has the same idempotency key or hero.`;
  return { because: "queued", text, since: new Date(run.createdAt), until: null };
}
