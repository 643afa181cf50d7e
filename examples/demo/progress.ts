/** How far each run is, from its history. */
import type { HistoryEvent, RunHandle, RunStatus } from "pawl";
import { stepNames } from "./order.js";

export interface RunProgress {
  readonly id: string;
  readonly status: RunStatus;
  readonly history: readonly HistoryEvent[];
  /** Steps that are recorded as completed. */
  readonly done: number;
  /** Whether its worker died while it executed the run. */
  readonly recovered: boolean;
}

export async function progressOf(run: RunHandle<any, any>): Promise<RunProgress> {
  const [history, status] = await Promise.all([run.history(), run.status()]);
  return {
    id: run.id,
    status,
    history,
    done: history.filter(({ type }) => type === "step.completed").length,
    recovered: history.some(({ type }) => type === "run.recovered"),
  };
}

/** The state of a run, in one word. */
export function activityOf({ status, done }: RunProgress): string {
  if (status === "completed") return "done";
  if (status === "waiting") return "sleeping";
  if (status === "pending") return "waiting for a worker";
  return stepNames[done] ?? "finishing";
}
