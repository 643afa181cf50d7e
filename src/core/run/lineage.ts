/**
 * The link from a retry to the run that it retries. The link is stored in the column `parent_node` of the retry, after the
 * name of the call that started the run, so that runs that are no retries need neither a column nor a read for it.
 */

import { childRunId } from "../naming/ids.js";
import { compensationKeyOf, isCompensation } from "./compensation.js";
import type { RunState } from "./state.js";
import { outerStep } from "./step-key.js";

/**
 * Separates the name of the call from the id of the retried run. No name of a call contains it, because names contain no
 * "#".
 */
const retryMarker = "#for:";
const retryMarkerPattern = /#for:([0-9a-f-]{36})$/i;

/** The value of `parentNode` in the row of a retry. */
export const retryParentNode = (node: string | null, retriedRunId: string): string =>
  `${node ?? ""}${retryMarker}${retriedRunId}`;

/** The run that this run retries; null when it is no retry. */
export function retriedRunIdOf(row: { readonly parentNode: string | null }): string | null {
  if (row.parentNode?.includes(retryMarker) !== true) return null;
  return retryMarkerPattern.exec(row.parentNode)?.[1] ?? null;
}

/** The name of the call in the parent's log, without the link to a retried run. */
export const callerNode = (parentNode: string): string =>
  parentNode.includes(retryMarker) ? parentNode.replace(retryMarkerPattern, "") : parentNode;

/** The id of the only retry of a run. If a run had two retries, both could compensate the same steps of the run. */
export const retryIdOf = (runId: string): string => childRunId(runId, "retry", 0);

/** Whether a run without a parent may be a retry. `retryIdOf` makes UUIDs of version 8; other runs have version 7. */
export const mayBeRetry = (rootId: string): boolean => rootId[14] === "8";

/** Whether the step was compensated, or is being compensated. */
export const isCompensationStarted = (state: RunState, step: string): boolean => state.ops.has(compensationKeyOf(step));

/**
 * The run whose id a step's idempotency key begins with. An unfinished step keeps the key of the first run of the lineage.
 * A step that was compensated gets a new key: for the old key, a payment provider would return the refunded payment.
 * Compensations are not inherited, so their keys begin with the id of the run itself.
 */
export function idempotencyRunIdOf(state: RunState, runId: string, key: string): string {
  if (state.lineage === null) return runId;
  const step = outerStep(key);
  if (isCompensation(step)) return runId;
  const { rootRunId, keyRunIds } = state.lineage;
  return keyRunIds.get(step) ?? rootRunId;
}
