/** When each execution of a run began and ended, for drawing. */
import type { ExecutionInfo } from "./executions.js";

export interface TimelineInterval {
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  readonly state: ExecutionInfo["state"];
  readonly outcome: string | null;
  /** When it was to begin, and when it did; null while it has not. */
  readonly scheduledFor: Date | null;
  readonly from: Date | null;
  /** null while it has not ended. */
  readonly to: Date | null;
}

/** In the order in which they began; what is yet to come is last. */
export function timelineOf(executions: readonly ExecutionInfo[]): TimelineInterval[] {
  const startTimeOf = ({ startedAt, scheduledFor, finishedAt }: ExecutionInfo) =>
    (startedAt ?? finishedAt ?? scheduledFor)?.getTime() ?? Number.POSITIVE_INFINITY;
  return [...executions]
    .sort((a, b) => startTimeOf(a) - startTimeOf(b))
    .map(({ id, step, attempt, state, outcome, scheduledFor, startedAt, finishedAt }) => ({
      id,
      step,
      attempt,
      state,
      outcome,
      scheduledFor,
      from: startedAt,
      to: finishedAt,
    }));
}
