/**
 * Which run a run goes on for. The row of the new run says so from birth, behind the name of the call that started it (a
 * run that no other run has started has nothing else there), so that ordinary runs need no column and no read for it.
 */

import { childRunId } from "../naming/ids.js";
import { compensationKeyOf, isCompensation } from "./compensation.js";
import type { RunState } from "./state.js";
import { outerStep } from "./step-key.js";

/** No step is called like that: the names that users give to their calls have no "#". */
const retryMarker = "#for:";
const retryMarkerPattern = /#for:([0-9a-f-]{36})$/i;

/** What the row of a run says that goes on for another one. */
export const retryParentNode = (node: string | null, retriedRunId: string): string =>
  `${node ?? ""}${retryMarker}${retriedRunId}`;

/** The run that this row goes on for; null for nearly all of them. */
export function retriedRunIdOf(row: { readonly parentNode: string | null }): string | null {
  if (row.parentNode?.includes(retryMarker) !== true) return null;
  return retryMarkerPattern.exec(row.parentNode)?.[1] ?? null;
}

/** The name of the call alone, as the parent knows it. */
export const callerNode = (parentNode: string): string =>
  parentNode.includes(retryMarker) ? parentNode.replace(retryMarkerPattern, "") : parentNode;

/** A run is retried once: two runs that go on for the same one would both be responsible for what it has done. */
export const retryIdOf = (runId: string): string => childRunId(runId, "retry", 0);

/** Of runs that no other run has started, only retries have such an id: theirs is computed, of version 8. */
export const mayBeRetry = (rootId: string): boolean => rootId[14] === "8";

/** Whether what this step did was undone, or is being undone. */
export const isCompensationStarted = (state: RunState, step: string): boolean => state.ops.has(compensationKeyOf(step));

/**
 * The run whose id a step's idempotency key begins with. What is still unfinished keeps the key of the run that first
 * tried it; what was undone has a new one, or a provider would answer with the payment that it gave back. Undoing is
 * never taken over, so it goes by the run itself.
 */
export function idempotencyRunIdOf(state: RunState, runId: string, key: string): string {
  if (state.lineage === null) return runId;
  const step = outerStep(key);
  if (isCompensation(step)) return runId;
  const { rootRunId, keyRunIds } = state.lineage;
  return keyRunIds.get(step) ?? rootRunId;
}
