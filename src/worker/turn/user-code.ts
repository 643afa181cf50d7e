/**
 * The boundary between the engine and user code. An exception, a return value or an option of user code may end or pause
 * its own run, but must not affect the worker or other runs.
 */
import { toFailure } from "../../core/encoding/error-record.js";
import { describeInvalidOptions } from "../../core/errors/thrown-options.js";
import type { Logger } from "../../define/context.js";
import type { RunningAttempt } from "../step/running-attempts.js";
import type { ExecutePort, PausePort, PhasePort, RunPort, WritePort } from "./ports.js";

type PausableTurn = RunPort & WritePort & PhasePort & PausePort & Pick<ExecutePort, "attempts">;

/**
 * Does the engine's work after user code, such as recording its outcome. If that work throws, the run is paused with the
 * error; otherwise the run would never continue in this worker, or the process would crash.
 *
 * @param attempt the attempt whose body ended; undefined for the handler
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
  turn.log.error(`Run ${turn.runId}: the outcome of its code could not be recorded; the run is paused.`, error);
  if (attempt !== undefined) {
    if (!attempt.isOver) turn.attempts.onBodyEnded(attempt);
    turn.attempts.release();
  }
  turn.phase.on({ type: "turn end refused" });
  turn.pauseWithError(`The outcome of its code could not be recorded: ${failure.message}`, failure, attempt?.key);
}

/** Calls a function of the user; if it throws or rejects, the error is logged and otherwise ignored. */
export function callSafely(log: Logger, errorText: string, call: () => unknown): void {
  const logError = (error: unknown) => log.error(errorText, error);
  try {
    Promise.resolve(call()).catch(logError);
  } catch (error) {
    logError(error);
  }
}

/** Warns about invalid retry or resume options of a thrown error, which are ignored. */
export function warnOfInvalidOptions(turn: Pick<RunPort, "log" | "runId">, error: unknown, where: string): void {
  const problems = describeInvalidOptions(error);
  if (problems !== null) turn.log.warn(`Run ${turn.runId}, ${where}: ${problems}`);
}
