/** Reads all pages of a list of runs, and makes the texts of errors that lists find by fingerprint. */
import { withFingerprint } from "../../core/run/fingerprint.js";
import type { RunQuery, RunRecord, Store } from "../../store/contract/store.js";

/** @throws Error when a page is too long, or is followed by one that does not begin later */
export async function readAllPages(store: Store, query: RunQuery): Promise<RunRecord[]> {
  const found: RunRecord[] = [];
  let after = query.after;
  for (;;) {
    const { runs, next, isCut } = await store.maintenance.questions.runs({ ...query, ...(after && { after }) });
    if (runs.length > query.limit) throw new Error(`A page has ${runs.length} runs instead of ${query.limit}.`);
    found.push(...runs);
    if (next === null && isCut) throw new Error("The last page is cut.");
    if (next === null) return found;
    if (next.id === after?.id && next.createdAt === after.createdAt) throw new Error("A page is followed by itself.");
    after = { createdAt: next.createdAt, id: next.id };
  }
}

export const fingerprintOfNumber = (n: number): string => n.toString(16).padStart(16, "0");

/** The error of a failed run, as the engine encodes it. */
export const errorText = (n: number): string =>
  JSON.stringify(withFingerprint(fingerprintOfNumber(n), { name: "Error", message: `no. ${n}`, step: null }));

/** The note of a run that is paused because of an error, as the engine encodes it. */
export const pauseNote = (n: number): string =>
  JSON.stringify(withFingerprint(fingerprintOfNumber(n), { waitingFor: [], paused: `no. ${n}` }));
