/** What an exception in a step means, and the events that say so. */

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
  react(): Reaction;
  readonly explain: ((error: unknown) => string) | undefined;
  /** How often in a row passing errors have put the step off before. */
  readonly postponed: number;
  /** The run of the job that the step is for has failed with it. */
  readonly jobRunEnded: boolean;
  /** The attempt got further than the one before it: failures and backoff count from here. */
  readonly cursorMoved: boolean;
}

/**
 * What an exception leads to. When the user's own policy throws, or answers with nonsense, the step is not tried again:
 * it has failed, or is paused if it is a declared one, which can be repaired, or undoes something, which must not be left.
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
    turn.log.error(`Run ${turn.runId}: what step "${key}" says about exceptions failed itself.`, policyError);
    const isRepairable = turn.definition.declared !== null || isCompensation(key);
    return createConsequence({ kind: isRepairable ? "pause" : "fail" }, error, attempt, context);
  }
}

interface Consequence {
  readonly events: readonly NewEvent[];
  /** What the whole run is to do about it. */
  readonly interrupt: FlowControlInterrupt | null;
  /** False: the step asked for a pause, which is no failure. */
  readonly isFailure: boolean;
}

interface FailureContext extends Pick<ExceptionContext, "explain" | "jobRunEnded" | "cursorMoved"> {
  readonly worker: string;
  readonly recheckPausedMs: number | null;
}

/** A step that asks for a pause has not failed: its execution ends as one that called `pause()`. */
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
      throw new InvalidInputError(`There is no reaction "${String((reaction as Reaction).kind)}".`);
  }
}

const asFailure = (...events: NewEvent[]): Consequence => ({ events, interrupt: null, isFailure: true });

function createPausedEvent(error: unknown, step: string, explain?: (error: unknown) => string): NewEvent {
  const failure = toFailure(error);
  const reason = explain?.(error) ?? `Step "${step}" failed: ${failure.message}${outputAdvice(error)}`;
  return newEvent("run.paused", { node: step }, { reason, error: failure });
}

/** The function of the step has run by the time that its output is found not to be storable. */
function outputAdvice(error: unknown): string {
  if (!(error instanceof SerializationError) && !(error instanceof PayloadTooLargeError)) return "";
  return " resume() runs the step again; resume({ output }) or skip() goes on without that.";
}
