/**
 * Pauses a run because of a problem that needs an operator. When the run is resumed, it continues after its recorded
 * work.
 */
import { type Failure, toFailure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError, NonDeterminismError } from "../../core/errors/errors.js";
import { newEvent } from "../../core/run/event.js";
import { isDeclared } from "../step/declared-steps.js";
import { createMismatchError } from "./mismatch.js";
import type { PhasePort, RunPort, WritePort } from "./ports.js";

type PausableTurn = RunPort & WritePort & PhasePort & { abort(reason: unknown): void };

/** Running steps are aborted, but may finish and are recorded; then the run is parked. */
export function pauseWithError(turn: PausableTurn, reason: string, error: Failure | null, node?: string): void {
  if (turn.isOver || turn.phase.isPausing || turn.state.paused !== null) return;
  turn.phase.isPausing = true;
  turn.abort(new ExecutionAbortedError(reason));
  const place = node === undefined ? {} : { node };
  void turn.submit([newEvent("run.paused", place, error === null ? { reason } : { reason, error })]);
}

/** Pauses the run because the log has calls under these keys that contradict the calls of the code. */
export function pauseDiverged(turn: PausableTurn, steps: readonly string[], problem: string): void {
  const names = steps.map((step) => `"${step}"`).join(", ");
  const error = new NonDeterminismError({ runId: turn.runId, steps, problem: `${problem} (${names})` });
  pauseWithError(turn, error.message, toFailure(error));
}

/** Pauses the run because the code has not made the left-over calls, which are in its log: see `replay-gate.ts`. */
export function pauseMismatched(
  turn: PausableTurn,
  gatedKeys: readonly string[],
  leftOver: readonly string[],
  thrown?: unknown,
): void {
  if (turn.isOver) return;
  const { state, runId, definition } = turn;
  const areNodes = definition.declared !== null && leftOver.every(isDeclared);
  const error = createMismatchError({ runId, gatedKeys, leftOver, state, areNodes, thrown });
  pauseWithError(turn, error.message, toFailure(error));
}
