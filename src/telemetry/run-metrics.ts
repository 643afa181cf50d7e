/** Derives metrics from the published events: runs that started and ended, step executions, and how long they took. */

import { type ErrorGuard, listen, type TelemetrySubscription } from "./listeners.js";
import { RunCache, type RunSource } from "./run-cache.js";
import { hasStepFailed, isStepEnd, stepEndOf } from "./step-ends.js";
import { BoundedLabels, StepLabels } from "./step-labels.js";

/** Records the metrics in the form of one exporter. */
export interface MetricsRecorder {
  runStarted(workflow: string): void;
  runEnded(workflow: string, status: string): void;
  runTook(workflow: string, status: string, seconds: number): void;
  runPaused(workflow: string): void;
  stepTook(workflow: string, step: string, seconds: number): void;
  stepFailed(workflow: string, step: string, outcome: string): void;
  /** @param schedule "other" for all schedules above a number */
  occurrenceDecided(schedule: string, outcome: string, count: number): void;
}

/** The buckets range from a step that reads a cache to a run that waits a week for a person. */
export const durationBucketsSeconds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400, 604_800,
];

/** Customers may have a schedule each. */
const maxScheduleLabels = 200;

export function recordMetrics(pawl: RunSource, recorder: MetricsRecorder, guard: ErrorGuard): TelemetrySubscription {
  const labels = new StepLabels();
  const scheduleLabels = new BoundedLabels(maxScheduleLabels);
  const runCache = new RunCache(pawl, (error) => guard.warnOnce(error));
  return listen(
    {
      onEvent: (runEvent) => {
        const { type, workflow, runId, at, outcome } = runEvent;
        if (type === "run.started") {
          runCache.recordStart(runEvent);
          recorder.runStarted(workflow);
        } else if (isRunEnd(type)) {
          const status = type.slice("run.".length);
          recorder.runEnded(workflow, status);
          guard.whenResolved(runCache.takeStartedAt(runId), (startedAt) => {
            if (startedAt !== null) recorder.runTook(workflow, status, Math.max(0, at - startedAt) / 1_000);
          });
        } else if (type === "run.paused") {
          recorder.runPaused(workflow);
        } else if (isStepEnd(runEvent)) {
          const step = labels.labelFor(workflow, runEvent.node ?? "");
          recorder.stepTook(workflow, step, stepEndOf(runEvent).ms / 1_000);
          if (hasStepFailed(runEvent)) recorder.stepFailed(workflow, step, outcome as string);
        }
      },
      onOccurrence: ({ schedule, outcome, count }) =>
        recorder.occurrenceDecided(scheduleLabels.labelFor(schedule), outcome, count),
    },
    guard,
  );
}

const isRunEnd = (type: string) => type === "run.completed" || type === "run.failed" || type === "run.canceled";
