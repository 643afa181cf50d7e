/** Pauses a run because of something that only a person can solve. Nothing is lost: it goes on when it is resumed. */
import { type Failure, toFailure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError, NonDeterminismError } from "../../core/errors/errors.js";
import { event } from "../../core/run/event.js";
import { isDeclared } from "../step/declared-steps.js";
import { mismatch } from "./mismatch.js";
import type { Phased, RunAtHand, RunWriting } from "./ports.js";

type HeldTurn = RunAtHand & RunWriting & Phased & { abort(reason: unknown): void };

/** What runs may finish and is recorded; then the run is parked. */
export function pauseWithError(turn: HeldTurn, reason: string, error: Failure | null, node?: string): void {
  if (turn.over || turn.phase.holding || turn.state.paused !== null) return;
  turn.phase.holding = true;
  turn.abort(new ExecutionAbortedError(reason));
  const place = node === undefined ? {} : { node };
  void turn.submit([event("run.paused", place, error === null ? { reason } : { reason, error })]);
}

/** The log has something under these keys that the code cannot mean. */
export function pauseDiverged(turn: HeldTurn, steps: readonly string[], problem: string): void {
  const names = steps.map((step) => `"${step}"`).join(", ");
  const error = new NonDeterminismError({ runId: turn.runId, steps, problem: `${problem} (${names})` });
  pauseWithError(turn, error.message, toFailure(error));
}

/** The code makes calls that the log lacks, and does not make those that it has: see `replay-gate.ts`. */
export function pauseMismatched(
  turn: HeldTurn,
  held: readonly string[],
  leftOver: readonly string[],
  thrown?: unknown,
): void {
  if (turn.over) return;
  const { state, runId, definition } = turn;
  const areNodes = definition.declared !== null && leftOver.every(isDeclared);
  const error = mismatch({ runId, held, leftOver, state, areNodes, thrown });
  pauseWithError(turn, error.message, toFailure(error));
}
