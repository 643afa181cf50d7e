/**
 * From the log to the state: `evolve` folds one event into it, and everything Pawl shows or decides about a run comes
 * from there. It is deterministic and does no I/O; it changes the state it is given and returns it, because a log of
 * 10,000 events must not copy 10,000 maps.
 */
import { DamagedDataError } from "../errors/errors.js";
import type { StoredEvent } from "./event.js";
import { childReducers } from "./fold-child.js";
import type { EventReducer } from "./fold-event.js";
import { runReducers } from "./fold-run.js";
import { stepReducers } from "./fold-step.js";
import { waitReducers } from "./fold-wait.js";
import { initialState, type RunState } from "./state.js";
import { scopeSeparator } from "./step-key.js";
import type { EventType } from "./stored-schema.js";

export function fold(events: Iterable<StoredEvent>, state: RunState = initialState()): RunState {
  for (const event of events) evolve(state, event);
  return state;
}

/**
 * What is known of a run whose log cannot be folded: all that came before the damage. New events go behind `lastSeq`.
 */
export function foldBeforeDamage(events: Iterable<StoredEvent>, lastSeq: number): RunState {
  const state = initialState();
  try {
    fold(events, state);
  } catch {
    // The caller knows that it is damaged.
  }
  state.seq = lastSeq;
  return state;
}

/** @throws DamagedDataError when the event does not follow the one before it, or cannot be read */
export function evolve(state: RunState, event: StoredEvent): RunState {
  if (event.seq !== state.seq + 1)
    throw damagedLogError(state.seq + 1, `the log has a gap: event ${event.seq} cannot follow event ${state.seq}`);
  state.seq = event.seq;
  if (event.type === "batch") throw damagedLogError(event.seq, "its row cannot be read");
  if (state.stepStructure !== null && event.node !== null) recordBodyCall(state, event.node, event.type);
  try {
    // A type that this version does not know was written by a newer one: it is passed over, not a reason to crash.
    reducers[event.type as EventType]?.(state, event);
  } catch (error) {
    throw damagedLogError(event.seq, error instanceof Error ? error.message : String(error), error);
  }
  if (!startupEventTypes.has(event.type)) state.lastProductiveDelivery = state.delivery;
  if (state.blockedWorkers !== null && event.type === "step.completed")
    clearBlockedWorkers(state.blockedWorkers, event.node);
  return state;
}

/** Before the event is folded: a call that the log had before was begun by an earlier attempt, or is being answered. */
function recordBodyCall(state: RunState, node: string, type: string): void {
  const separatorIndex = node.indexOf(scopeSeparator);
  if (separatorIndex < 0) {
    if (type === "step.started") state.bodyCalls?.delete(node);
    return;
  }
  if (state.ops.has(node)) return;
  const step = node.slice(0, separatorIndex);
  state.bodyCalls ??= new Map();
  const calls = state.bodyCalls.get(step);
  if (calls === undefined) state.bodyCalls.set(step, new Set([node]));
  else calls.add(node);
}
const damagedLogError = (seq: number, problem: string, cause?: unknown) =>
  new DamagedDataError({ column: "events", event: seq, problem }, { cause });
/** This step does not block for ever, and the handler, or whatever it was, got as far as here. */
function clearBlockedWorkers(blockedWorkers: NonNullable<RunState["blockedWorkers"]>, step: string | null): void {
  for (const place of [step, "", null]) blockedWorkers.delete(place);
}

/** What the next owner of a run writes before it gets anywhere. */
const startupEventTypes = new Set(["run.started", "input.checked", "run.recovered", "shape.changed", "step.started"]);

const reducers: Readonly<Record<EventType, EventReducer>> = {
  ...runReducers,
  ...stepReducers,
  ...waitReducers,
  ...childReducers,
};
