/** How an execution of a step ended, as events. */
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

export function completedEvent(turn: StepTurn, settings: StepSettings, attempt: Attempt, output: unknown): NewEvent {
  const { key } = attempt;
  const text = encodeOutput(key, settings, output);
  const raw: Record<string, string> = { output: text };
  const { input } = settings;
  if (input !== undefined) raw.input = encode(input, { label: `the input of step "${key}"` });
  const ms = attempt.elapsedMs;
  const hash = ancestryOf(turn, settings, attempt, text);
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
  } catch (refused) {
    // What a transactional step did is rolled back.
    if (!(refused instanceof SerializationError) || settings.kind === "transaction") throw refused;
    const { message, path, cause } = refused;
    throw new SerializationError(`${message} ${hasRun}`, { path, cause });
  }
}

function ancestryOf(turn: StepTurn, settings: StepSettings, { key, attempt }: Attempt, output: string): string | null {
  const { state, parentsOf } = turn;
  return settings.declared ? ancestryHashFor(state, parentsOf, key, attempt, output) : null;
}

/** What flow control that its body raised makes of a step. */
export function flowEvents(
  turn: StepTurn,
  { declared }: StepSettings,
  attempt: TurnAttempt,
  signal: FlowControlInterrupt,
): NewEvent[] {
  turn.flowControl.take(attempt);
  signal.isHandled = true;
  const { action } = signal;
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
  const unmoved = outcome === "continued" && isStandstill(attempt, waitMs) ? ({ cursorUnmoved: true } as const) : {};
  const data = { waitMs, ms: attempt.elapsedMs, ...(rewind ? ({ rewind: true } as const) : {}), ...unmoved };
  return newEvent("step.reattempted", placeOf(attempt, outcome), data);
}

/** A step that is continued again and again and never gets anywhere is stopped before it fills the log. */
function createContinuedEvents(turn: StepTurn, attempt: TurnAttempt, waitMs: number): NewEvent[] {
  const next = createReattemptedEvent(attempt, "continued", waitMs);
  const op = turn.state.ops.get(attempt.key) as StepOp | undefined;
  if (!isStandstill(attempt, waitMs) || (op?.continuationsWithoutProgress ?? 0) < maxStandstill) return [next];
  const reason = `Step "${attempt.key}" was continued ${maxStandstill} times without moving its cursor; it is held because it gets nowhere.`;
  return [next, newEvent("run.paused", { node: attempt.key }, { reason })];
}

function placeOf({ key, attempt }: Attempt, outcome: StepOutcome) {
  return { node: key, attempt, outcome };
}

const maxStandstill = 1_000;

/** A step without a cursor may come back as often as it likes, if it only waits in between. */
const isStandstill = ({ checkpoints }: TurnAttempt, waitMs: number) =>
  checkpoints === null ? waitMs === 0 : checkpoints.isUnmoved;

const hasRun =
  "The step's function has already run, and what it did stands: only its return value cannot be recorded. " +
  "Return plain data from it, or nothing: async () => { await … }.";
