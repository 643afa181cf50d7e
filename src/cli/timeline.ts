/** Draws the executions of a run as bars of text on a common time scale. */
import type { ExecutionInfo } from "../client/inspect/executions.js";

const block = "█";
const waitingMark = "░";

type Interval = Pick<ExecutionInfo, "state" | "startedAt" | "finishedAt">;

export interface TimelineScale {
  readonly from: number;
  readonly to: number;
  /** The width of the scale in characters. */
  readonly width: number;
}

/** Returns the scale from the earliest start to the latest end; an execution that has not ended lasts until now. */
export function scaleOf(executions: readonly Interval[], width: number, now: number): TimelineScale {
  const starts = executions.flatMap(({ startedAt, finishedAt }) => (startedAt ?? finishedAt)?.getTime() ?? []);
  const ends = executions.flatMap(({ state, finishedAt }) =>
    state === "executing" ? now : (finishedAt?.getTime() ?? []),
  );
  const from = starts.length === 0 ? now : Math.min(...starts);
  return { from, to: Math.max(from, ...ends), width };
}

/**
 * Draws a bar of at least one block at the execution's place on the scale. A scheduled execution is a mark at the end.
 */
export function bar({ state, startedAt, finishedAt }: Interval, scale: TimelineScale, now: number): string {
  const last = scale.width - 1;
  const span = scale.to - scale.from;
  const columnAt = (at: number) => (span === 0 ? 0 : Math.round(((at - scale.from) / span) * last));
  if (state === "scheduled") return " ".repeat(last) + waitingMark;
  const startDate = startedAt ?? finishedAt;
  if (startDate === null) return "";
  const first = columnAt(startDate.getTime());
  const end = columnAt(finishedAt?.getTime() ?? now);
  return " ".repeat(first) + block.repeat(Math.max(1, end - first + 1));
}
