/** Reads the ends of step executions from the events of the log. */

import type { Failure } from "../core/encoding/error-record.js";
import { dataOf } from "../core/run/event.js";
import { readStepFacts } from "../core/run/step-completed.js";
import type { RunEvent } from "./publish.js";

const stepEndTypes = new Set(["step.completed", "step.failed", "step.reattempted", "step.skipped", "step.canceled"]);

export const isStepEnd = ({ type }: RunEvent): boolean => stepEndTypes.has(type);

/** Returns how long the execution ran (0 if an operator gave the result) and what it threw. */
export function stepEndOf(event: RunEvent): { readonly ms: number; readonly error: Failure | null } {
  if (event.type === "step.completed") return { ms: readStepFacts(event.data).ms ?? 0, error: null };
  const { ms = 0, error = null } = dataOf(event, "step.failed") as { ms?: number; error?: Failure };
  return { ms, error };
}

/** Decides by the outcome, so that a counter of failures does not have to decode the error. */
export const hasStepFailed = ({ outcome }: RunEvent): boolean =>
  outcome !== null && (outcome === "timed_out" || outcome.endsWith("_by_exception"));
