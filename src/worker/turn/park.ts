/** A worker lets go of a run until something happens. */
import { event, type NewEvent } from "../../core/run/event.js";
import { parkByOwner, type Station } from "../../core/run/park.js";
import { newsSeenIn } from "../../core/run/parking-note.js";
import type { Next } from "../../core/run/transition.js";
import { hasWorkForCode } from "./idle.js";
import type { WholeTurn } from "./ports.js";

type ParkingTurn = WholeTurn & {
  /** Where the step that is asked for is to be run, when its workflow has an opinion about that. */
  readonly station: Station | null;
  readonly recordsStart: boolean;
};

/** @param last one more event, which explains why */
export async function parkRun(turn: ParkingTurn, last?: NewEvent): Promise<void> {
  if (!turn.phase.on({ type: "parking began" })) return;
  const { pendingWrites, writer, state } = turn;
  if (last !== undefined) pendingWrites.events.push(last);
  // A worker had it, so its time to begin has come: without an event about that, it would wait for its time for ever.
  if (state.startedAt === null && !state.becameDue && !turn.recordsStart)
    pendingWrites.events.push(event("run.became_due", {}));
  while (writer.unsettled) await writer.settled();
  if (!turn.over) await writer.submit([], nextOf(turn));
}

function nextOf(turn: ParkingTurn): Next {
  const { phase, results } = turn;
  const codeRan = phase.hasCalledCode;
  return parkByOwner({
    state: turn.state,
    pending: turn.pendingWrites,
    at: turn.writer.heardAt,
    // Stopped before the code ran: it still has to.
    isCutShort: phase.cutShort && (codeRan || hasWorkForCode(turn)),
    awaited: codeRan ? (key) => results.pending.has(key) : undefined,
    newsSeen: codeRan ? "all" : newsSeenIn(turn.run.waiting),
    station: turn.station,
  });
}
