/** The runs that execute the jobs of a class's steps: what they are called in the log, and which of them have ended. */
import { jobOf } from "./route.js";
import { scopeOf } from "./scope.js";
import type { RunState, StepOp } from "./state.js";

/** The name of the child within its step. Runs that failed have numbers of their own; attempts at the step do not. */
export const jobRunName = (number: number): string => `job_${number}`;

/** Steps that wait for their job, which has ended: how the step itself ends is not in the log yet. */
export function stepsWhoseJobsEnded(state: RunState): ReadonlySet<string> {
  const ended = new Set<string>();
  for (const [step, op] of state.ops) {
    if (op.kind !== "step" || op.phase !== "started" || op.abandoned) continue;
    const child = state.ops.get(currentJobRun(step, op));
    if (child?.kind === "child" && child.phase !== "open" && jobOf(child.workflow) !== null) ended.add(step);
  }
  return ended;
}

const currentJobRun = (step: string, { spent }: StepOp): string => scopeOf(step) + jobRunName(spent + 1);
