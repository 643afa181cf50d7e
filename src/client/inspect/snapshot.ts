/** A run as it was: its state rebuilt from the log, up to any event. */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { fold } from "../../core/run/fold.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import { waitingFor } from "../../core/run/waiting.js";
import type { RunStatus, StoredEvent } from "../../store/contract/store.js";

export interface RunSnapshot {
  /** How many events had happened, and when the last of them did. */
  readonly seq: number;
  readonly at: Date | null;
  /** As if no worker owned it: a run in execution shows as "waiting". */
  readonly status: RunStatus;
  readonly steps: readonly StepSnapshot[];
  readonly waitingFor: readonly Waiting[];
  /** Signals that had come and that no wait had taken yet. */
  readonly signals: readonly string[];
  readonly paused: { readonly reason: string; readonly error: Error | null } | null;
}

export interface StepSnapshot {
  readonly name: string;
  readonly state: "scheduled" | "executing" | "completed" | "failed" | "skipped";
  readonly attempt: number;
}

export function snapshotAt(log: readonly StoredEvent[], seq: number): RunSnapshot {
  const events = log.filter((event) => event.seq <= seq);
  const state = fold(events);
  const last = events.at(-1);
  return {
    seq: state.seq,
    at: last === undefined ? null : new Date(last.at),
    status: statusOf(state),
    steps: stepsOf(state),
    waitingFor: waitingFor(state),
    signals: state.pendingSignals.map(({ name }) => name),
    paused: state.paused === null ? null : { reason: state.paused.reason, error: toError(state.paused.error) },
  };
}

const toError = (failure: Failure | null) => (failure === null ? null : reviveFailure(failure));

const stateByPhase = {
  awaiting_attempt: "scheduled",
  started: "executing",
  completed: "completed",
  failed: "failed",
  skipped: "skipped",
} as const;

function stepsOf(state: RunState): StepSnapshot[] {
  const steps: StepSnapshot[] = [];
  for (const [name, op] of state.ops) {
    if (op.kind !== "step") continue;
    steps.push({
      name,
      state: stateByPhase[op.phase],
      attempt: op.phase === "awaiting_attempt" ? op.attempt + 1 : op.attempt,
    });
  }
  return steps;
}
