/** The executions of a run as bars beside each other's time, in text. */
import type { ExecutionInfo } from "../client/inspect/executions.js";

const block = "█";
const waiting = "░";

type Interval = Pick<ExecutionInfo, "state" | "startedAt" | "finishedAt">;

export interface TimelineScale {
  readonly from: number;
  readonly to: number;
  /** In characters. */
  readonly width: number;
}

/** From the first beginning to the last end; what has not ended goes on until now. */
export function scaleOf(executions: readonly Interval[], width: number, now: number): TimelineScale {
  const begins = executions.flatMap(({ startedAt, finishedAt }) => (startedAt ?? finishedAt)?.getTime() ?? []);
  const ends = executions.flatMap(({ state, finishedAt }) =>
    state === "executing" ? now : (finishedAt?.getTime() ?? []),
  );
  const from = begins.length === 0 ? now : Math.min(...begins);
  return { from, to: Math.max(from, ...ends), width };
}

/** At least one block, where it belongs. What is yet to come is a mark at the end. */
export function bar({ state, startedAt, finishedAt }: Interval, scale: TimelineScale, now: number): string {
  const last = scale.width - 1;
  const span = scale.to - scale.from;
  const columnAt = (at: number) => (span === 0 ? 0 : Math.round(((at - scale.from) / span) * last));
  if (state === "scheduled") return " ".repeat(last) + waiting;
  const startDate = startedAt ?? finishedAt;
  if (startDate === null) return "";
  const first = columnAt(startDate.getTime());
  const end = columnAt(finishedAt?.getTime() ?? now);
  return " ".repeat(first) + block.repeat(Math.max(1, end - first + 1));
}
