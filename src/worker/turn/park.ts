/** A worker lets go of a run until something happens. */
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { parkByOwner, type TaskRouting } from "../../core/run/park.js";
import { seenVersionIn } from "../../core/run/parking-note.js";
import type { NextTaskState } from "../../core/run/transition.js";
import { hasWorkForCode } from "./idle.js";
import type { WholeTurn } from "./ports.js";

type ParkingTurn = WholeTurn & {
  /** Where the step that is asked for is to be run, when its workflow has an opinion about that. */
  readonly placement: TaskRouting | null;
  readonly willRecordStart: boolean;
};

/** @param finalEvent one more event, which explains why */
export async function parkRun(turn: ParkingTurn, finalEvent?: NewEvent): Promise<void> {
  if (!turn.phase.on({ type: "parking began" })) return;
  const { pendingWrites, writer, state } = turn;
  if (finalEvent !== undefined) pendingWrites.events.push(finalEvent);
  // A worker had it, so its time to begin has come: without an event about that, it would wait for its time for ever.
  if (state.startedAt === null && !state.becameDueWhilePaused && !turn.willRecordStart)
    pendingWrites.events.push(newEvent("run.became_due", {}));
  while (writer.hasUnacknowledgedWrites) await writer.waitUntilAcknowledged();
  if (!turn.isOver) await writer.submit([], createParkState(turn));
}

function createParkState(turn: ParkingTurn): NextTaskState {
  const { phase, results } = turn;
  const codeRan = phase.hasCalledCode;
  return parkByOwner({
    state: turn.state,
    pending: turn.pendingWrites,
    storeNow: turn.writer.lastStoreTimeAt,
    // Stopped before the code ran: it still has to.
    wasCodeStopped: phase.isInterrupted && (codeRan || hasWorkForCode(turn)),
    isAwaited: codeRan ? (key) => results.pending.has(key) : undefined,
    seenVersion: codeRan ? "all" : seenVersionIn(turn.run.waiting),
    routing: turn.placement,
  });
}
