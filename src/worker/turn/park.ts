/** Parks a run: the worker releases it until a message arrives or a due time is reached. */
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { parkByOwner, type TaskRouting } from "../../core/run/park.js";
import { seenVersionIn } from "../../core/run/parking-note.js";
import type { NextTaskState } from "../../core/run/transition.js";
import { hasWorkForCode } from "./idle.js";
import { mayHaveParkedSteps } from "./parked-steps.js";
import type { WholeTurn } from "./ports.js";

type ParkingTurn = WholeTurn & {
  /** The workers that should execute the next step, if its workflow routes steps. */
  readonly placement: TaskRouting | null;
  readonly willRecordStart: boolean;
};

/** @param finalEvent an event that says why the run is parked */
export async function parkRun(turn: ParkingTurn, finalEvent?: NewEvent, waitsForSlots = false): Promise<void> {
  if (!turn.phase.on({ type: "parking started" })) return;
  const { pendingWrites, writer, state } = turn;
  if (finalEvent !== undefined) pendingWrites.events.push(finalEvent);
  // A worker claimed the run, so its start time has passed. Without this event, the run would never become due again.
  if (state.startedAt === null && !state.becameDueWhilePaused && !turn.willRecordStart)
    pendingWrites.events.push(newEvent("run.became_due", {}));
  while (writer.hasUnacknowledgedWrites) await writer.waitUntilAcknowledged();
  if (!turn.isOver) await writer.submit([], createParkState(turn, waitsForSlots));
}

function createParkState(turn: ParkingTurn, waitsForSlots: boolean): NextTaskState {
  const { phase, results } = turn;
  const left = new Set(turn.slots.leftKeys);
  const codeRan = phase.hasCalledCode;
  return parkByOwner({
    state: turn.state,
    pending: turn.pendingWrites,
    storeNow: turn.writer.lastStoreTimeAt,
    // If the worker stopped before it called the code, and there is work for the code, the next owner must call it.
    wasCodeStopped: !waitsForSlots && phase.isInterrupted && (codeRan || hasWorkForCode(turn)),
    // The time of an attempt that waits for a slot has come: only a slot makes it due again.
    isAwaited: codeRan ? (key) => results.pending.has(key) && !left.has(key) : undefined,
    seenVersion: waitsForSlots ? null : codeRan ? "all" : seenVersionIn(turn.run.waiting),
    routing: turn.placement,
    mayHaveParkedSteps: mayHaveParkedSteps(turn),
  });
}
