/** The runs that execute the jobs of steps and nodes: their names in the log, and which of these runs have ended. */
import type { FrozenDag } from "../graph/frozen-dag.js";
import { jobOf } from "../naming/route.js";
import { isDispatched, type RunState, type StepOp } from "./state.js";
import { scopeOf, scopeSeparator } from "./step-key.js";

/**
 * The name, within its step, of the call that starts the run of the job. The number grows with discarded job runs, not with
 * attempts at the step, because an attempt after a worker's death reuses the run.
 */
export const jobRunName = (number: number): string => `job_${number}`;

/** The steps whose job has ended, but whose own end is not in the log yet. */
export function stepsWhoseJobsEnded(state: RunState): ReadonlySet<string> {
  const endedSteps = new Set<string>();
  for (const [step, op] of state.ops) {
    if (op.kind !== "step" || op.phase !== "started" || op.isAbandoned) continue;
    const child = state.ops.get(currentJobRunKey(step, op));
    if (child?.kind === "child" && child.phase !== "open" && jobOf(child.workflow) !== null) endedSteps.add(step);
  }
  return endedSteps;
}

/** The steps and nodes whose job is executed by another run, with the name of the job. */
export function* runningJobs(state: RunState): Generator<{ readonly step: string; readonly job: string }> {
  for (const [step, op] of state.ops) {
    if (op.kind !== "step" || op.phase !== "started" || step.includes(scopeSeparator)) continue;
    const child = state.ops.get(currentJobRunKey(step, op));
    const job = isDispatched(op)
      ? op.job
      : child?.kind === "child" && child.phase === "open"
        ? jobOf(child.workflow)
        : null;
    if (job !== null) yield { step, job };
  }
}

/**
 * The steps whose running job is replaced by an imported graph. Only a run that is paused because of a missing job replaces
 * running jobs; in any other run they continue, because starting another job could repeat their effect.
 */
export function stepsWithReplacedJob(state: RunState, dag: FrozenDag): string[] {
  if (state.paused?.error?.name !== "MissingJobError") return [];
  const steps: string[] = [];
  for (const { step, job } of runningJobs(state)) {
    const node = dag.nodes[step];
    if (node?.job !== undefined && node.job !== job) steps.push(step);
  }
  return steps;
}

const currentJobRunKey = (step: string, { discardedJobRuns }: StepOp): string =>
  scopeOf(step) + jobRunName(discardedJobRuns + 1);
