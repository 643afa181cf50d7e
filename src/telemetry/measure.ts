/** What is worth counting of all that is told: runs that began and ended, executions, and how long they took. */
import { KnownRuns, type RunSource } from "./known-runs.js";
import { type Guard, type Listening, listen } from "./listen.js";
import { endOf, hasFailed, isStepEnd } from "./step-ends.js";
import { StepLabels } from "./step-labels.js";

/** The listener that keeps the figures. */
export interface Meters {
  runStarted(workflow: string): void;
  runEnded(workflow: string, status: string): void;
  runTook(workflow: string, status: string, seconds: number): void;
  runPaused(workflow: string): void;
  stepTook(workflow: string, step: string, seconds: number): void;
  stepFailed(workflow: string, step: string, outcome: string): void;
}

/** From a step that asks a cache to a run that waits for a person. */
export const secondsBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400, 604_800,
];

export function measure(pawl: RunSource, meters: Meters, guard: Guard): Listening {
  const labels = new StepLabels();
  const known = new KnownRuns(pawl, (error) => guard.complain(error));
  return listen(
    {
      event: (told) => {
        const { type, workflow, runId, at, outcome } = told;
        if (type === "run.started") {
          known.hearOfStart(told);
          meters.runStarted(workflow);
        } else if (isRunEnd(type)) {
          const status = type.slice("run.".length);
          meters.runEnded(workflow, status);
          guard.with(known.startedAtOf(runId), (startedAt) => {
            if (startedAt !== null) meters.runTook(workflow, status, Math.max(0, at - startedAt) / 1_000);
          });
        } else if (type === "run.paused") {
          meters.runPaused(workflow);
        } else if (isStepEnd(told)) {
          const step = labels.of(workflow, told.node ?? "");
          meters.stepTook(workflow, step, endOf(told).ms / 1_000);
          if (hasFailed(told)) meters.stepFailed(workflow, step, outcome as string);
        }
      },
    },
    guard,
  );
}

const isRunEnd = (type: string) => type === "run.completed" || type === "run.failed" || type === "run.canceled";
