/** The ends of step executions, as the log tells them. */

import type { Failure } from "../core/encoding/error-record.js";
import { dataOf } from "../core/run/event.js";
import { readStepFacts } from "../core/run/step-completed.js";
import type { ToldEvent } from "./tell.js";

const ends = new Set(["step.completed", "step.failed", "step.reattempted", "step.skipped", "step.canceled"]);

export const isStepEnd = ({ type }: ToldEvent): boolean => ends.has(type);

/** How long it ran (0 for a step that an operator answered for) and what it threw. */
export function endOf(told: ToldEvent): { readonly ms: number; readonly error: Failure | null } {
  if (told.type === "step.completed") return { ms: readStepFacts(told.data).ms ?? 0, error: null };
  const { ms = 0, error = null } = dataOf(told, "step.failed") as { ms?: number; error?: Failure };
  return { ms, error };
}

/** By its outcome: the error need not be decoded to count it. */
export const hasFailed = ({ outcome }: ToldEvent): boolean =>
  outcome !== null && (outcome === "timed_out" || outcome.endsWith("_by_exception"));
