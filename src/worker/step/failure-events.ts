/** Decides what an exception in a step leads to, and creates the events that record it. */

import { toFailure } from "../../core/encoding/error-record.js";
import {
  InvalidInputError,
  PauseError,
  PayloadTooLargeError,
  SerializationError,
  TimeoutError,
} from "../../core/errors/errors.js";
import { isCompensation } from "../../core/run/compensation.js";
import { type NewEvent, newEvent, type StepOutcome } from "../../core/run/event.js";
import { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { Reaction } from "../../define/step-engine.js";
import type { RunPort } from "../turn/ports.js";
import type { Attempt } from "./attempt.js";
import { pausedBy } from "./pause-event.js";
import { describePostponedTooOften, isPostponedTooOften } from "./postponement.js";

interface ExceptionContext {
  /** Calls the step's exception or retry policy. */
  react(): Reaction;
  /** Creates the pause reason for operators; undefined: the default text. */
  readonly explain: ((error: unknown) => string) | undefined;
  /** How many attempts in a row ended with a transient error before this one. */
  readonly postponed: number;
  /**
   * Whether the step runs a job and the job's run has ended, so that the next attempt must start a new run of the job.
   */
  readonly jobRunEnded: boolean;
  /** Whether the attempt moved the cursor. If so, the retry policy counts failures and backoff from this attempt on. */
  readonly cursorMoved: boolean;
}

/**
 * Decides what an exception leads to. If the user's policy throws or returns an invalid reaction, the step is not
 * retried. A declared step or a compensation then pauses the run, because an operator can repair it; any other step fails.
 */
export function decideConsequence(
  turn: RunPort,
  error: unknown,
  attempt: Attempt,
  { react, explain, postponed, ...flags }: ExceptionContext,
): Consequence {
  const { key } = attempt;
  const { recheckPausedMs, workerName: worker } = turn.host;
  const context = { explain, worker, recheckPausedMs, ...flags };
  try {
    const reaction = react();
    if (reaction.kind !== "reattempt" || reaction.countsAsReattempt || !isPostponedTooOften(postponed))
      return createConsequence(reaction, error, attempt, context);
    const pauseContext = { ...context, explain: () => describePostponedTooOften(`Step "${key}"`, error) };
    return createConsequence({ kind: "pause" }, error, attempt, pauseContext);
  } catch (policyError) {
    const isRepairable = turn.definition.declared !== null || isCompensation(key);
    const outcome = isRepairable ? "the run is paused" : "the step fails";
    turn.log.error(`Run ${turn.runId}: the exception policy of step "${key}" threw, so ${outcome}.`, policyError);
    return createConsequence({ kind: isRepairable ? "pause" : "fail" }, error, attempt, context);
  }
}

interface Consequence {
  readonly events: readonly NewEvent[];
  /** Flow control for the whole run, or null. */
  readonly interrupt: FlowControlInterrupt | null;
  /** False if the step requested a pause with a `PauseError`, which is not reported as an error. */
  readonly isFailure: boolean;
}

interface FailureContext extends Pick<ExceptionContext, "explain" | "jobRunEnded" | "cursorMoved"> {
  readonly worker: string;
  readonly recheckPausedMs: number | null;
}

/** A `PauseError` is not a failure: the attempt is recorded as if its body had called `pause()`. */
function createPauseConsequence(
  error: PauseError,
  stepAttempt: Attempt,
  { recheckPausedMs }: FailureContext,
): Consequence {
  const { key: node, attempt, elapsedMs: ms } = stepAttempt;
  const stepEnded = newEvent("step.reattempted", { node, attempt, outcome: "workflow_paused" }, { waitMs: 0, ms });
  return { events: [stepEnded, pausedBy(error, { node }, recheckPausedMs)], interrupt: null, isFailure: false };
}

function createConsequence(reaction: Reaction, error: unknown, attempt: Attempt, context: FailureContext): Consequence {
  const { explain, jobRunEnded, cursorMoved, worker } = context;
  const failure = toFailure(error);
  const failureData = {
    error: failure,
    ms: attempt.elapsedMs,
    worker,
    ...(jobRunEnded ? ({ jobRunEnded: true } as const) : {}),
    ...(cursorMoved ? ({ cursorMoved: true } as const) : {}),
  };
  const placeOf = (outcome: StepOutcome) => ({ node: attempt.key, attempt: attempt.attempt, outcome });
  const timeoutOutcome = error instanceof TimeoutError ? "timed_out" : null;
  switch (reaction.kind) {
    case "reattempt": {
      const transient = reaction.countsAsReattempt ? {} : { transient: true };
      const data = { ...failureData, retryMs: reaction.waitMs, ...transient };
      return asFailure(newEvent("step.failed", placeOf(timeoutOutcome ?? "reattempted_by_exception"), data));
    }
    case "fail":
      return asFailure(newEvent("step.failed", placeOf(timeoutOutcome ?? "failed_by_exception"), failureData));
    case "pause": {
      if (error instanceof PauseError && !jobRunEnded) return createPauseConsequence(error, attempt, context);
      const data = { ...failureData, retryMs: 0, transient: true };
      return asFailure(
        newEvent("step.failed", placeOf(timeoutOutcome ?? "paused_by_exception"), data),
        createPausedEvent(error, attempt.key, explain),
      );
    }
    case "skip":
      return asFailure(newEvent("step.skipped", placeOf(timeoutOutcome ?? "skipped_by_exception"), failureData));
    case "cancel": {
      const interrupt = new FlowControlInterrupt({ kind: "cancel", reason: failure.message });
      const events = [newEvent("step.failed", placeOf(timeoutOutcome ?? "canceled_by_exception"), failureData)];
      return { events, interrupt, isFailure: true };
    }
    default:
      throw new InvalidInputError(`Unknown reaction "${String((reaction as Reaction).kind)}" to an exception.`);
  }
}

const asFailure = (...events: NewEvent[]): Consequence => ({ events, interrupt: null, isFailure: true });

function createPausedEvent(error: unknown, step: string, explain?: (error: unknown) => string): NewEvent {
  const failure = toFailure(error);
  const reason = explain?.(error) ?? `Step "${step}" failed: ${failure.message}${outputAdvice(error)}`;
  return newEvent("run.paused", { node: step }, { reason, error: failure });
}

/** If the step's output cannot be stored, its function has already run. The operator may not want to run it again. */
function outputAdvice(error: unknown): string {
  if (!(error instanceof SerializationError) && !(error instanceof PayloadTooLargeError)) return "";
  return " resume() runs the step again; resume({ output }) or skip() continues without running it again.";
}
