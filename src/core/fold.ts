/**
 * From the log to the state: `evolve` folds one event into it, and everything Pawl shows or decides about a run comes
 * from there. It is deterministic and does no I/O; it changes the state it is given and returns it, because a log of
 * 10,000 events must not copy 10,000 maps.
 */
import type { EventType, StoredEvent } from "./event.js";
import { childFolders } from "./folding/child.js";
import type { Folder } from "./folding/folder.js";
import { runFolders } from "./folding/run.js";
import { stepFolders } from "./folding/step.js";
import { waitFolders } from "./folding/wait.js";
import { initialState, type RunState } from "./state.js";

export function fold(events: Iterable<StoredEvent>, state: RunState = initialState()): RunState {
  for (const event of events) evolve(state, event);
  return state;
}

export function evolve(state: RunState, event: StoredEvent): RunState {
  if (event.seq !== state.seq + 1)
    throw new RangeError(`Event ${event.seq} cannot follow event ${state.seq}: the log has a gap.`);
  state.seq = event.seq;
  if (event.type === "batch") throw new RangeError(`Event ${event.seq} cannot be read: its row is damaged.`);
  // A type that this version does not know was written by a newer one: it is passed over, not a reason to crash.
  folders[event.type as EventType]?.(state, event);
  if (!beginnings.has(event.type)) state.survived = state.delivery;
  if (state.blocked !== null && event.type === "step.completed") gotFurther(state.blocked, event.node);
  return state;
}

/** This step does not block for ever, and the handler, or whatever it was, got as far as here. */
function gotFurther(blocked: NonNullable<RunState["blocked"]>, step: string | null): void {
  for (const place of [step, "", null]) blocked.delete(place);
}

/** What the next owner of a run writes before it gets anywhere. */
const beginnings = new Set(["run.started", "run.recovered", "shape.changed", "step.started"]);

const folders: Readonly<Record<EventType, Folder>> = { ...runFolders, ...stepFolders, ...waitFolders, ...childFolders };
