/** Rebuilds the state of a run from its log, up to any event. */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { fold } from "../../core/run/fold.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import { waitingFor } from "../../core/run/waiting.js";
import type { RunStatus, StoredEvent } from "../../store/contract/store.js";

/** A run as it was after one of its events, as `run.stateAt(seq)` returns it. */
export interface RunSnapshot {
  /** The number of the last event. */
  readonly seq: number;
  /** When the last event happened; null if there was no event. */
  readonly at: Date | null;
  /** The status. A run that a worker was executing shows as "waiting". */
  readonly status: RunStatus;
  /** The steps that the log has up to that event. */
  readonly steps: readonly StepSnapshot[];
  /** What the run was waiting for. */
  readonly waitingFor: readonly Waiting[];
  /** The names of signals that had arrived and were not consumed. */
  readonly signals: readonly string[];
  /** The pause of the run; null if it was not paused. */
  readonly paused: {
    /** Why it was paused. */
    readonly reason: string;
    /** The exception that paused it; null if there was none. */
    readonly error: Error | null;
  } | null;
}

/** A step in a `RunSnapshot`. */
export interface StepSnapshot {
  /** The name of the step. */
  readonly name: string;
  /** The state of the step. */
  readonly state: "scheduled" | "executing" | "completed" | "failed" | "skipped";
  /** The number of the latest attempt; for a scheduled step, the number of the attempt that was scheduled. */
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
