/** Step executions: each attempt at each step, computed from the log. */
import { dataOf } from "../core/event.js";
import { type Failure, reviveFailure } from "../core/failure.js";
import { executionId } from "../core/ids.js";
import type { StoredEvent } from "../store/store.js";

export interface ExecutionInfo {
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  readonly state: "executing" | "completed" | "failed" | "canceled" | "skipped";
  readonly outcome: string | null;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly error: Error | null;
}

export function executionsOf(runId: string, log: readonly StoredEvent[]): ExecutionInfo[] {
  const found = new Map<string, ExecutionInfo>();
  for (const event of log) {
    if (event.type === "run.recovered") abandonOpen(found, event);
    if (!event.type.startsWith("step.") || event.node === null) continue;
    const attempt = event.attempt ?? 1;
    const id = executionId(runId, event.node, attempt);
    const old = found.get(id);
    found.set(id, { ...(old ?? begun(id, event.node, attempt, event)), ...ending(event, old) });
  }
  return [...found.values()];
}

function begun(id: string, step: string, attempt: number, event: StoredEvent): ExecutionInfo {
  return {
    id,
    step,
    attempt,
    state: "executing",
    outcome: null,
    startedAt: new Date(event.at),
    finishedAt: null,
    error: null,
  };
}

function ending(event: StoredEvent, old: ExecutionInfo | undefined): Partial<ExecutionInfo> {
  if (event.type === "step.started") return {};
  const { ms = 0, error } = dataOf(event, "step.failed") as { ms?: number; error?: Failure };
  const state = states[event.type] ?? "completed";
  return {
    state: event.outcome === "workflow_paused" ? "canceled" : state,
    outcome: event.outcome,
    startedAt: old?.startedAt ?? new Date(event.at - ms),
    finishedAt: new Date(event.at),
    error: error === undefined ? null : reviveFailure(error),
  };
}

const states: Record<string, ExecutionInfo["state"]> = {
  "step.completed": "completed",
  "step.failed": "failed",
  "step.skipped": "skipped",
  "step.canceled": "canceled",
  "step.reattempted": "completed",
};

function abandonOpen(found: Map<string, ExecutionInfo>, event: StoredEvent): void {
  for (const [id, execution] of found) {
    if (execution.state === "executing")
      found.set(id, { ...execution, state: "failed", outcome: "abandoned", finishedAt: new Date(event.at) });
  }
}
