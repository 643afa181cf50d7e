/** How far each run is, from its history. */
import type { HistoryEvent, RunHandle, RunStatus } from "pawl";
import { stepNames } from "./order.js";

export interface RunProgress {
  readonly id: string;
  readonly status: RunStatus;
  readonly history: readonly HistoryEvent[];
  /** Steps that are recorded as completed. */
  readonly done: number;
  /** How many of them before the first worker was killed; all of them if its death did not concern this run. */
  readonly doneBeforeCrash: number;
  readonly recovered: boolean;
}

export async function progressOf(run: RunHandle<any, any>): Promise<RunProgress> {
  const [history, status] = await Promise.all([run.history(), run.status()]);
  const completed = history.filter(({ type }) => type === "step.completed");
  const recovery = history.find(({ type }) => type === "run.recovered");
  const before = recovery === undefined ? completed : completed.filter(({ seq }) => seq < recovery.seq);
  return {
    id: run.id,
    status,
    history,
    done: completed.length,
    doneBeforeCrash: before.length,
    recovered: recovery !== undefined,
  };
}

/** What a run is doing, in a word. */
export function activityOf({ status, done }: RunProgress): string {
  if (status === "completed") return "done";
  if (status === "waiting") return "sleeping";
  if (status === "pending") return "waiting for a worker";
  return stepNames[done] ?? "finishing";
}
