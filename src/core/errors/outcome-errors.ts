/** How a run, or one execution of a step, ended, for the code that awaits it. */

import { nameErrors, PawlError } from "./pawl-error.js";

/** The run that was awaited has failed; `cause` is the error that made it fail. */
export class RunFailedError extends PawlError {
  readonly code = "RUN_FAILED";
  readonly runId: string;

  constructor(runId: string, cause: unknown) {
    const what = cause instanceof Error ? `${cause.name}: ${cause.message}` : "an unknown error";
    super(`Run ${runId} failed with ${what} (see cause, or the run's history).`, { cause });
    this.runId = runId;
  }
}

/** The run that was awaited has been canceled. */
export class RunCanceledError extends PawlError {
  readonly code = "RUN_CANCELED";
  readonly runId: string;
  readonly reason: string | undefined;

  constructor(runId: string, reason?: string) {
    super(`Run ${runId} was canceled${reason === undefined ? ", no reason given" : `: ${reason}`}.`);
    this.runId = runId;
    this.reason = reason;
  }
}

/** Something took longer than the time it was given. */
export class TimeoutError extends PawlError {
  readonly code = "TIMEOUT";
}

/** The reason of an `abortSignal`: this worker does not execute the step any more. What its body still does is not recorded. */
export class ExecutionAbortedError extends PawlError {
  readonly code = "EXECUTION_ABORTED";
}

nameErrors({ RunFailedError, RunCanceledError, TimeoutError, ExecutionAbortedError });
