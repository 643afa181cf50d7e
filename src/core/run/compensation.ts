/** Compensation (sagas): which completed steps a run that fails or is canceled has to undo. */
import type { RunState, StepOp } from "./state.js";

/**
 * The key under which the compensation of a step is recorded. No step has such a key, because step names contain no "#".
 */
export const compensationKeyOf = (step: string): string => `${step}${suffix}`;
export const isCompensation = (key: string): boolean => key.endsWith(suffix);

const suffix = "#compensate";

/** The steps that still have to be compensated, in the reverse order of their completion. */
export function openCompensations(state: RunState): string[] {
  if (state.undoableSteps.length === 0) return state.undoableSteps;
  return state.undoableSteps.filter((step) => state.ops.has(step) && !isCompensated(state, step)).reverse();
}

function isCompensated(state: RunState, step: string): boolean {
  const op = state.ops.get(compensationKeyOf(step)) as StepOp | undefined;
  return op?.phase === "completed" || op?.phase === "skipped";
}
