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
import { event, type NewEvent, type Outcome } from "../../core/run/event.js";
import { FlowSignal } from "../../core/run/flow-control.js";
import type { Reaction } from "../../define/step-engine.js";
import type { RunAtHand } from "../turn/ports.js";
import type { Attempt } from "./attempt.js";
import { pausedBy } from "./pause-event.js";
import { isPutOffTooOften, putOffTooOften } from "./put-off.js";

interface ThrownFrom {
  react(): Reaction;
  readonly explain: ((error: unknown) => string) | undefined;
  /** How often in a row passing errors have put the step off before. */
  readonly postponed: number;
  /** The run of the job that the step is for has failed with it. */
  readonly spent: boolean;
  /** The attempt got further than the one before it: failures and backoff count from here. */
  readonly moved: boolean;
}

/**
 * What an exception leads to. When the user's own policy throws, or answers with nonsense, the step is not tried again:
 * it has failed, or is paused if it is a declared one, which can be repaired, or undoes something, which must not be left.
 */
export function consequenceOf(
  turn: RunAtHand,
  error: unknown,
  execution: Attempt,
  { react, explain, postponed, ...facts }: ThrownFrom,
): Consequence {
  const { key } = execution;
  const { recheckPausedMs, workerName: worker } = turn.host;
  const how = { explain, worker, recheckPausedMs, ...facts };
  try {
    const reaction = react();
    if (reaction.kind !== "reattempt" || reaction.counts || !isPutOffTooOften(postponed))
      return eventsOf(reaction, error, execution, how);
    const tooOften = { ...how, explain: () => putOffTooOften(`Step "${key}"`, error) };
    return eventsOf({ kind: "pause" }, error, execution, tooOften);
  } catch (broken) {
    turn.log.error(`Run ${turn.runId}: what step "${key}" says about exceptions failed itself.`, broken);
    const isRepairable = turn.definition.declared !== null || isCompensation(key);
    return eventsOf({ kind: isRepairable ? "pause" : "fail" }, error, execution, how);
  }
}

interface Consequence {
  readonly events: readonly NewEvent[];
  /** What the whole run is to do about it. */
  readonly signal: FlowSignal | null;
  /** False: the step asked for a pause, which is no failure. */
  readonly isFailure: boolean;
}

interface How extends Pick<ThrownFrom, "explain" | "spent" | "moved"> {
  readonly worker: string;
  readonly recheckPausedMs: number | null;
}

/** A step that asks for a pause has not failed: its execution ends as one that called `pause()`. */
function asksForPause(error: PauseError, execution: Attempt, { recheckPausedMs }: How): Consequence {
  const { key: node, attempt, elapsedMs: ms } = execution;
  const ended = event("step.reattempted", { node, attempt, outcome: "workflow_paused" }, { waitMs: 0, ms });
  return { events: [ended, pausedBy(error, { node }, recheckPausedMs)], signal: null, isFailure: false };
}

function eventsOf(reaction: Reaction, error: unknown, execution: Attempt, how: How): Consequence {
  const { explain, spent, moved, worker } = how;
  const failure = toFailure(error);
  const ended = {
    error: failure,
    ms: execution.elapsedMs,
    worker,
    ...(spent ? ({ spent: true } as const) : {}),
    ...(moved ? ({ moved: true } as const) : {}),
  };
  const place = (outcome: Outcome) => ({ node: execution.key, attempt: execution.attempt, outcome });
  const timedOut = error instanceof TimeoutError ? "timed_out" : null;
  switch (reaction.kind) {
    case "reattempt": {
      const transient = reaction.counts ? {} : { transient: true };
      const data = { ...ended, retryMs: reaction.waitMs, ...transient };
      return only(event("step.failed", place(timedOut ?? "reattempted_by_exception"), data));
    }
    case "fail":
      return only(event("step.failed", place(timedOut ?? "failed_by_exception"), ended));
    case "pause": {
      if (error instanceof PauseError && !spent) return asksForPause(error, execution, how);
      const data = { ...ended, retryMs: 0, transient: true };
      return only(
        event("step.failed", place(timedOut ?? "paused_by_exception"), data),
        paused(error, execution.key, explain),
      );
    }
    case "skip":
      return only(event("step.skipped", place(timedOut ?? "skipped_by_exception"), ended));
    case "cancel": {
      const signal = new FlowSignal({ kind: "cancel", reason: failure.message });
      const events = [event("step.failed", place(timedOut ?? "canceled_by_exception"), ended)];
      return { events, signal, isFailure: true };
    }
    default:
      throw new InvalidInputError(`There is no reaction "${String((reaction as Reaction).kind)}".`);
  }
}

const only = (...events: NewEvent[]): Consequence => ({ events, signal: null, isFailure: true });

function paused(error: unknown, step: string, explain?: (error: unknown) => string): NewEvent {
  const failure = toFailure(error);
  const reason = explain?.(error) ?? `Step "${step}" failed: ${failure.message}${withoutRunningAgain(error)}`;
  return event("run.paused", { node: step }, { reason, error: failure });
}

/** The function of the step has run by the time that its output is found not to be storable. */
function withoutRunningAgain(error: unknown): string {
  if (!(error instanceof SerializationError) && !(error instanceof PayloadTooLargeError)) return "";
  return " resume() runs the step again; resume({ output }) or skip() goes on without that.";
}
