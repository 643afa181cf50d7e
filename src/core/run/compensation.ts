/** Sagas: what a run that fails or is canceled has to undo, from its log. */
import type { RunState, StepOp } from "./state.js";

/** Under which name undoing a step is recorded. No step can be called like that. */
export const compensationKeyOf = (step: string): string => `${step}${suffix}`;
export const isCompensation = (key: string): boolean => key.endsWith(suffix);

const suffix = "#compensate";

/** The steps that can be undone and have not been, the one that was completed last first. */
export function openCompensations(state: RunState): string[] {
  if (state.undoableSteps.length === 0) return state.undoableSteps;
  return state.undoableSteps.filter((step) => state.ops.has(step) && !isCompensated(state, step)).reverse();
}

function isCompensated(state: RunState, step: string): boolean {
  const op = state.ops.get(compensationKeyOf(step)) as StepOp | undefined;
  return op?.phase === "completed" || op?.phase === "skipped";
}
