/**
 * Folds a log into the state of its run. Everything that Pawl shows or decides about the run is computed from this state.
 * `evolve` folds one event; it is deterministic and does no I/O. It changes the given state in place, because copying the
 * maps for each event of a log of 10,000 events would be too slow.
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
 * The state before the damaged event of a log that cannot be folded.
 *
 * @param lastSeq the number of the last event in the log, after which new events are appended
 */
export function foldBeforeDamage(events: Iterable<StoredEvent>, lastSeq: number): RunState {
  const state = initialState();
  try {
    fold(events, state);
  } catch {
    // The caller has reported the damage.
  }
  state.seq = lastSeq;
  return state;
}

/** @throws DamagedDataError when the event's number is not the next in the log, or the event cannot be read */
export function evolve(state: RunState, event: StoredEvent): RunState {
  if (event.seq !== state.seq + 1)
    throw damagedLogError(state.seq + 1, `the log has a gap: event ${event.seq} cannot follow event ${state.seq}`);
  state.seq = event.seq;
  if (event.type === "batch") throw damagedLogError(event.seq, "its row cannot be read");
  if (state.stepStructure !== null && event.node !== null) recordBodyCall(state, event.node, event.type);
  try {
    // An event of an unknown type was written by a newer version of Pawl, and is ignored.
    reducers[event.type as EventType]?.(state, event);
  } catch (error) {
    throw damagedLogError(event.seq, error instanceof Error ? error.message : String(error), error);
  }
  if (!startupEventTypes.has(event.type)) state.lastProductiveDelivery = state.delivery;
  if (state.blockedWorkers !== null && event.type === "step.completed")
    clearBlockedWorkers(state.blockedWorkers, event.node);
  return state;
}

/**
 * Records a new call of a declared step's body. This function must be called before the event is folded: if the call is
 * already in `ops`, it was made earlier, and the event is its result or a further attempt.
 */
function recordBodyCall(state: RunState, callKey: string, type: string): void {
  const separatorIndex = callKey.indexOf(scopeSeparator);
  if (separatorIndex < 0) {
    if (type === "step.started") state.bodyCalls?.delete(callKey);
    return;
  }
  if (state.ops.has(callKey)) return;
  const step = callKey.slice(0, separatorIndex);
  state.bodyCalls ??= new Map();
  const calls = state.bodyCalls.get(step);
  if (calls === undefined) state.bodyCalls.set(step, new Set([callKey]));
  else calls.add(callKey);
}

const damagedLogError = (seq: number, problem: string, cause?: unknown) =>
  new DamagedDataError({ column: "events", event: seq, problem }, { cause });

/** A step that has completed no longer blocks the event loop, and neither does the handler's code before the step. */
function clearBlockedWorkers(blockedWorkers: NonNullable<RunState["blockedWorkers"]>, step: string | null): void {
  for (const place of [step, "", null]) blockedWorkers.delete(place);
}

/** Events that a new owner may write before the workflow's code makes progress. All other events are progress. */
const startupEventTypes = new Set(["run.started", "input.checked", "run.recovered", "shape.changed", "step.started"]);

const reducers: Readonly<Record<EventType, EventReducer>> = {
  ...runReducers,
  ...stepReducers,
  ...waitReducers,
  ...childReducers,
  // Only people read this event: its effect is in the events that follow it.
  "command.accepted": () => {},
};
