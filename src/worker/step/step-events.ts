/** How an execution of a step ended, as events. */
import { encode } from "../../core/encoding/encode.js";
import { SerializationError } from "../../core/errors/data-errors.js";
import { hashFor } from "../../core/graph/ancestry-hash.js";
import { event, type NewEvent, type Outcome } from "../../core/run/event.js";
import type { FlowSignal } from "../../core/run/flow-control.js";
import type { StepOp } from "../../core/run/state.js";
import type { StepTurn } from "../turn/ports.js";
import type { Attempt } from "./attempt.js";
import type { StepSettings } from "./step-settings.js";
import type { TurnAttempt } from "./turn-attempt.js";

export function completedEvent(turn: StepTurn, settings: StepSettings, execution: Attempt, output: unknown): NewEvent {
  const { key } = execution;
  const text = encodeOutput(key, settings, output);
  const raw: Record<string, string> = { output: text };
  const { input } = settings;
  if (input !== undefined) raw.input = encode(input, { what: `the input of step "${key}"` });
  const ms = execution.elapsedMs;
  const hash = ancestryOf(turn, settings, execution, text);
  const data = {
    ...(settings.undoable ? { undo: true as const } : {}),
    ...(hash === null ? {} : { hash }),
    ms,
  };
  return event("step.completed", placeOf(execution, "success"), data, raw);
}

function encodeOutput(key: string, settings: StepSettings, output: unknown): string {
  const what = `the output of step "${key}"`;
  try {
    return encode(output, { what });
  } catch (refused) {
    // What a transactional step did is rolled back.
    if (!(refused instanceof SerializationError) || settings.kind === "transaction") throw refused;
    const { message, path, cause } = refused;
    throw new SerializationError(`${message} ${hasRun}`, { path, cause });
  }
}

function ancestryOf(turn: StepTurn, settings: StepSettings, { key, attempt }: Attempt, output: string): string | null {
  const { state, parentsOf } = turn;
  return settings.declared ? hashFor(state, parentsOf, key, attempt, output) : null;
}

/** What flow control that its body raised makes of a step. */
export function flowEvents(
  turn: StepTurn,
  { declared }: StepSettings,
  execution: TurnAttempt,
  signal: FlowSignal,
): NewEvent[] {
  turn.flowControl.take(execution);
  signal.honoured = true;
  const { action } = signal;
  const ms = execution.elapsedMs;
  switch (action.kind) {
    case "skip":
      return [event("step.skipped", placeOf(execution, action.outcome ?? "skipped_by_flow_control"), { ms })];
    case "reattempt":
      return [again(execution, "reattempted", action.waitMs, declared && action.rewind)];
    case "suspend":
      return continued(turn, execution, action.waitMs);
    case "pause": {
      const reason = action.reason ?? "Paused by the workflow.";
      return [again(execution, "workflow_paused", 0), event("run.paused", { node: execution.key }, { reason })];
    }
    case "cancel":
      return [event("step.canceled", placeOf(execution, action.outcome ?? "canceled_by_flow_control"), { ms })];
    case "finish":
      return [event("step.completed", placeOf(execution, "success"), { ms })];
  }
}

function again(execution: TurnAttempt, outcome: Outcome, waitMs: number, rewind = false): NewEvent {
  const still = outcome === "continued" && getsNowhere(execution, waitMs) ? ({ still: true } as const) : {};
  const data = { waitMs, ms: execution.elapsedMs, ...(rewind ? ({ rewind: true } as const) : {}), ...still };
  return event("step.reattempted", placeOf(execution, outcome), data);
}

/** A step that is continued again and again and never gets anywhere is stopped before it fills the log. */
function continued(turn: StepTurn, execution: TurnAttempt, waitMs: number): NewEvent[] {
  const next = again(execution, "continued", waitMs);
  const op = turn.state.ops.get(execution.key) as StepOp | undefined;
  if (!getsNowhere(execution, waitMs) || (op?.standstill ?? 0) < maxStandstill) return [next];
  const reason = `Step "${execution.key}" was continued ${maxStandstill} times without moving its cursor; it is held because it gets nowhere.`;
  return [next, event("run.paused", { node: execution.key }, { reason })];
}

function placeOf({ key, attempt }: Attempt, outcome: Outcome) {
  return { node: key, attempt, outcome };
}

const maxStandstill = 1_000;

/** A step without a cursor may come back as often as it likes, if it only waits in between. */
const getsNowhere = ({ checkpoints }: TurnAttempt, waitMs: number) =>
  checkpoints === null ? waitMs === 0 : checkpoints.still;

const hasRun =
  "The step's function has already run, and what it did stands: only its return value cannot be recorded. " +
  "Return plain data from it, or nothing: async () => { await … }.";
