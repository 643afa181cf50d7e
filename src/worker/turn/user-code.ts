/**
 * Where the engine meets the user's code. Whatever that code throws, returns or is configured with may end or pause its
 * own run; the worker and the runs beside it go on.
 */
import { toFailure } from "../../core/encoding/error-record.js";
import { describeInvalidOptions } from "../../core/errors/thrown-options.js";
import type { Logger } from "../../define/context.js";
import type { RunningAttempt } from "../step/running-attempts.js";
import type { ExecutePort, PausePort, PhasePort, RunPort, WritePort } from "./ports.js";

type PausableTurn = RunPort & WritePort & PhasePort & PausePort & Pick<ExecutePort, "attempts">;

/**
 * Does what follows from the end of a piece of user code, or goes on with its run. Should that fail itself, the run would
 * be left without an execution, or the process would end: the run is paused with the error instead.
 *
 * @param attempt whose body it was; without it, the handler's
 */
export function pauseRunOnError(turn: PausableTurn, work: () => unknown, attempt?: RunningAttempt): void {
  try {
    const promise = work();
    if (promise instanceof Promise) promise.catch((error) => pauseAfterError(turn, error, attempt));
  } catch (error) {
    pauseAfterError(turn, error, attempt);
  }
}

function pauseAfterError(turn: PausableTurn, error: unknown, attempt?: RunningAttempt): void {
  if (turn.isOver) return;
  const failure = toFailure(error);
  turn.log.error(`Run ${turn.runId}: what its code came to could not be recorded; the run is paused.`, error);
  if (attempt !== undefined) {
    if (!attempt.isOver) turn.attempts.onBodyEnded(attempt);
    turn.attempts.release();
  }
  turn.phase.on({ type: "leaving refused" });
  turn.pauseWithError(`What its code came to could not be recorded: ${failure.message}`, failure, attempt?.key);
}

/** Calls something whose failure concerns no run: it is logged, also if it comes later. */
export function callSafely(log: Logger, errorText: string, call: () => unknown): void {
  const logError = (error: unknown) => log.error(errorText, error);
  try {
    // It may be async, by mistake or not.
    Promise.resolve(call()).catch(logError);
  } catch (error) {
    logError(error);
  }
}

/** Says what a thrown error says about when to go on and cannot be meant: it is passed over, but not in silence. */
export function warnOfInvalidOptions(turn: Pick<RunPort, "log" | "runId">, error: unknown, where: string): void {
  const problems = describeInvalidOptions(error);
  if (problems !== null) turn.log.warn(`Run ${turn.runId}, ${where}: ${problems}`);
}
