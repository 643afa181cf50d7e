/** Creates the events that record how an attempt at a step ended. */
import { encode } from "../../core/encoding/encode.js";
import { SerializationError } from "../../core/errors/data-errors.js";
import { ancestryHashFor } from "../../core/graph/ancestry-hash.js";
import { type NewEvent, newEvent, type StepOutcome } from "../../core/run/event.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { StepOp } from "../../core/run/state.js";
import type { StepTurn } from "../turn/ports.js";
import type { Attempt } from "./attempt.js";
import type { StepSettings } from "./step-settings.js";
import type { TurnAttempt } from "./turn-attempt.js";

export function createCompletedEvent(
  turn: StepTurn,
  settings: StepSettings,
  attempt: Attempt,
  output: unknown,
): NewEvent {
  const { key } = attempt;
  const outputText = encodeOutput(key, settings, output);
  const raw: Record<string, string> = { output: outputText };
  const { input } = settings;
  if (input !== undefined) raw.input = encode(input, { label: `the input of step "${key}"` });
  const ms = attempt.elapsedMs;
  const hash = computeAncestryHash(turn, settings, attempt, outputText);
  const data = {
    ...(settings.undoable ? { undo: true as const } : {}),
    ...(hash === null ? {} : { hash }),
    ms,
  };
  return newEvent("step.completed", placeOf(attempt, "success"), data, raw);
}

function encodeOutput(key: string, settings: StepSettings, output: unknown): string {
  const label = `the output of step "${key}"`;
  try {
    return encode(output, { label });
  } catch (error) {
    // The writes of a transactional step are rolled back, so the advice that its effects remain would be wrong.
    if (!(error instanceof SerializationError) || settings.kind === "transaction") throw error;
    const { message, path, cause } = error;
    throw new SerializationError(`${message} ${alreadyRanAdvice}`, { path, cause });
  }
}

function computeAncestryHash(
  turn: StepTurn,
  settings: StepSettings,
  { key, attempt }: Attempt,
  output: string,
): string | null {
  const { state, parentsOf } = turn;
  return settings.declared ? ancestryHashFor(state, parentsOf, key, attempt, output) : null;
}

/** Creates the events for flow control that the step's body raised. */
export function createFlowControlEvents(
  turn: StepTurn,
  { declared }: StepSettings,
  attempt: TurnAttempt,
  interrupt: FlowControlInterrupt,
): NewEvent[] {
  turn.flowControl.take(attempt);
  interrupt.isHandled = true;
  const { action } = interrupt;
  const ms = attempt.elapsedMs;
  switch (action.kind) {
    case "skip":
      return [newEvent("step.skipped", placeOf(attempt, action.outcome ?? "skipped_by_flow_control"), { ms })];
    case "reattempt":
      return [createReattemptedEvent(attempt, "reattempted", action.waitMs, declared && action.rewind)];
    case "suspend":
      return createContinuedEvents(turn, attempt, action.waitMs);
    case "pause": {
      const reason = action.reason ?? "Paused by the workflow.";
      return [
        createReattemptedEvent(attempt, "workflow_paused", 0),
        newEvent("run.paused", { node: attempt.key }, { reason }),
      ];
    }
    case "cancel":
      return [newEvent("step.canceled", placeOf(attempt, action.outcome ?? "canceled_by_flow_control"), { ms })];
    case "finish":
      return [newEvent("step.completed", placeOf(attempt, "success"), { ms })];
  }
}

function createReattemptedEvent(attempt: TurnAttempt, outcome: StepOutcome, waitMs: number, rewind = false): NewEvent {
  const unmovedData =
    outcome === "continued" && hasMadeNoProgress(attempt, waitMs) ? ({ cursorUnmoved: true } as const) : {};
  const data = { waitMs, ms: attempt.elapsedMs, ...(rewind ? ({ rewind: true } as const) : {}), ...unmovedData };
  return newEvent("step.reattempted", placeOf(attempt, outcome), data);
}

/** Pauses the run if the step was continued too often without progress, because each continuation adds an event to the log. */
function createContinuedEvents(turn: StepTurn, attempt: TurnAttempt, waitMs: number): NewEvent[] {
  const continuedEvent = createReattemptedEvent(attempt, "continued", waitMs);
  const op = turn.state.ops.get(attempt.key) as StepOp | undefined;
  if (!hasMadeNoProgress(attempt, waitMs) || (op?.continuationsWithoutProgress ?? 0) < maxContinuationsWithoutProgress)
    return [continuedEvent];
  const reason = `Step "${attempt.key}" was continued ${maxContinuationsWithoutProgress} times without moving its cursor; the run is paused because the step makes no progress.`;
  return [continuedEvent, newEvent("run.paused", { node: attempt.key }, { reason })];
}

function placeOf({ key, attempt }: Attempt, outcome: StepOutcome) {
  return { node: key, attempt, outcome };
}

const maxContinuationsWithoutProgress = 1_000;

/**
 * A continuation of a step without a cursor counts as progress if the step waits before it, for instance when it polls.
 */
const hasMadeNoProgress = ({ checkpoints }: TurnAttempt, waitMs: number) =>
  checkpoints === null ? waitMs === 0 : checkpoints.isUnmoved;

const alreadyRanAdvice =
  "The step's function has already run and its effects remain; only its return value cannot be recorded. " +
  "Return plain data from it, or nothing: async () => { await … }.";
