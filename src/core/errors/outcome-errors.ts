/** Errors that tell awaiting code how a run, or one execution of a step, ended. */

import { nameErrors, PawlError } from "./pawl-error.js";

/**
 * Thrown by `run.result()` and `ctx.run()` when the awaited run has failed; `cause` is the error that made the run fail.
 * Once its cause is fixed, `run.retry()` starts a new run that keeps the completed steps.
 */
export class RunFailedError extends PawlError {
  readonly code = "RUN_FAILED";
  /** The run that failed. */
  readonly runId: string;

  constructor(runId: string, cause: unknown) {
    const description = cause instanceof Error ? `${cause.name}: ${cause.message}` : "an unknown error";
    super(`Run ${runId} failed with ${description} (see cause, or the run's history).`, { cause });
    this.runId = runId;
  }
}

/** Thrown by `run.result()` and `ctx.run()` when the awaited run was canceled. */
export class RunCanceledError extends PawlError {
  /**
   * "EXPIRED" when the run was canceled because it had not begun by its `startBy`; "LIMIT_SKIPPED" and "LIMIT_SUPERSEDED" when
   * a limit was full whose `onFull` is "skip" or "cancelOldest"; otherwise "RUN_CANCELED".
   */
  readonly code: "RUN_CANCELED" | "EXPIRED" | "LIMIT_SKIPPED" | "LIMIT_SUPERSEDED";
  /** The run that was canceled. */
  readonly runId: string;
  /** The reason that the caller gave for the cancellation; undefined when the caller gave none. */
  readonly reason: string | undefined;

  constructor(runId: string, reason?: string, code?: unknown) {
    super(`Run ${runId} was canceled${reason === undefined ? ", no reason given" : `: ${reason}`}.`);
    this.runId = runId;
    this.reason = reason;
    this.code = isCodeOfCancel(code) ? code : "RUN_CANCELED";
  }
}

/** Whether Pawl itself has canceled the run, for this reason. */
export const isCodeOfCancel = (code: unknown): code is "EXPIRED" | "LIMIT_SKIPPED" | "LIMIT_SUPERSEDED" =>
  code === "EXPIRED" || code === "LIMIT_SKIPPED" || code === "LIMIT_SUPERSEDED";

/**
 * The error of a run that was not begun because a limit whose `onFull` is "fail" had no free slot for it. `run.result()` throws
 * a RunFailedError with this error as its cause.
 */
export class LimitFullError extends PawlError {
  readonly code = "LIMIT_FULL";
  /** The name of the limit. */
  readonly limit: string;
  /** The key that had no free slot; "" for a limit without one. */
  readonly key: string;

  constructor(message: string, { limit, key }: { readonly limit: string; readonly key: string }) {
    super(message);
    this.limit = limit;
    this.key = key;
  }
}

/**
 * The error of a run that was not begun because runs would wait for each other for ever: it needs a slot of a limit whose runs
 * hold theirs until they end (`while: "open"`), and the run that holds it waits, perhaps by way of others, for this run.
 * `run.result()` throws a RunFailedError with this error as its cause.
 */
export class LimitCycleError extends PawlError {
  readonly code = "LIMIT_CYCLE";
  /** The name of the limit. */
  readonly limit: string;
  /** The key that has no free slot; "" for a limit without one. */
  readonly key: string;
  /** Which run waits for which. */
  readonly chain: readonly string[];

  constructor(
    message: string,
    { limit, key, chain }: { readonly limit: string; readonly key: string; readonly chain: readonly string[] },
  ) {
    super(message);
    this.limit = limit;
    this.key = key;
    this.chain = chain;
  }
}

/**
 * A step exceeded its `timeout`, a run exceeded its `timeout`, or a run did not end within the `timeout` of `result()`. In
 * the last case the run is not affected: call `result()` again to wait longer.
 */
export class TimeoutError extends PawlError {
  readonly code = "TIMEOUT";
}

/**
 * The `reason` of a step's `abortSignal` when this worker no longer executes the step: the worker stops, or the run was
 * paused, canceled or taken over by another worker. The step's body should stop; its result is not recorded any more.
 */
export class ExecutionAbortedError extends PawlError {
  readonly code = "EXECUTION_ABORTED";
}

nameErrors({ RunFailedError, RunCanceledError, LimitFullError, LimitCycleError, TimeoutError, ExecutionAbortedError });
