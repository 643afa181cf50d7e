/** The executions of a run as intervals, for drawing. */
import type { ExecutionInfo } from "./executions.js";

/** One execution of a step as an interval, as `run.timeline()` returns it. */
export interface TimelineInterval {
  /** The id of the execution. */
  readonly id: string;
  /** The name of the step. */
  readonly step: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** The state of the execution. */
  readonly state: ExecutionInfo["state"];
  /** How it ended; null if it has not ended. */
  readonly outcome: string | null;
  /** The time that it was scheduled for; null if it did not have to wait. */
  readonly scheduledFor: Date | null;
  /** When it started; null if it has not started. */
  readonly from: Date | null;
  /** When it ended; null if it has not ended. */
  readonly to: Date | null;
}

/** Sorts the executions by start time; an execution without a start, by its end or by the time it is scheduled for. */
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
