/** Where the next step of a run is executed: here, or by workers that are for it. */
import type { Station } from "../../core/run/park.js";
import type { Idling, Phased, RunAtHand } from "./ports.js";

type PlacedTurn = RunAtHand & Phased & Idling & { station: Station | null };

/** The next step is run here, or, if this worker is not for it, handed over to those that are. */
export function enterStation(turn: PlacedTurn, station: Station, waitsFirst: boolean): void {
  const { definition, host, phase } = turn;
  if (definition.declared?.placed !== true) return;
  turn.station = station;
  // Then the run is parked in any case, and wakes up where it belongs.
  if (waitsFirst || host.serves(station.route, definition.version)) return;
  phase.handingOver = true;
  turn.scheduleIdleCheck();
}

/** Its step was interrupted so that other runs get their turn: if there are any, it is put back among those that wait. */
export function giveWay({ host, phase }: PlacedTurn): void {
  if (host.crowded()) phase.handingOver = true;
}
