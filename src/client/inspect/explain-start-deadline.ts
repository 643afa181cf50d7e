/** Adds to the explanation of a run that has not begun by when it must begin. */
import type { RunRecord, Store } from "../../store/contract/store.js";
import type { Explanation } from "./explanation.js";

/** Only runs that no worker has taken yet are looked up. */
export async function withStartDeadline(store: Store, run: RunRecord, explanation: Explanation): Promise<Explanation> {
  if (run.startedAt !== null) return explanation;
  const [deadline] = await store.maintenance.startDeadlines.ofRuns([run.id]);
  if (deadline === undefined) return explanation;
  const expiresAt = new Date(deadline.at);
  const text = `${explanation.text} If it has not begun by ${expiresAt.toISOString()}, it is canceled.`;
  return { ...explanation, text, expiresAt };
}
