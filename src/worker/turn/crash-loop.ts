/** Crash-loop protection: a run is paused if several workers in a row died while executing it and it made no progress. */

import type { Failure } from "../../core/encoding/error-record.js";
import { newEvent } from "../../core/run/event.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import type { RunPort, TurnEndPort, WritePort } from "./ports.js";
import { readForTurn } from "./read.js";
import type { TurnSnapshot } from "./turn-host.js";

type CrashedTurn = RunPort & WritePort & Pick<TurnEndPort, "park">;

/** How many workers have died with this run since a worker last recorded progress. */
export function countWorkerDeaths({ deliveries, state, run }: CrashedTurn, { inbox }: TurnSnapshot): number {
  if (deliveries === 1) return 0;
  // Deliveries are counted from the last park.
  const { seq: parkedSeq = 0 } = readParkingNote(run.waiting);
  const lastProductiveDelivery = state.recoveredSeq > parkedSeq ? state.lastProductiveDelivery : 1;
  // A worker that died of a blocked event loop is not counted here: that death is recorded for the run that blocked it.
  const blockedDeaths = inbox.some(({ kind }) => kind === "blocked") ? 1 : 0;
  return deliveries - Math.min(deliveries, lastProductiveDelivery + blockedDeaths);
}

/** Pauses the run and returns false, unless the cursor of a step has moved since the last worker died. */
export async function passesCrashLoopCheck(
  turn: CrashedTurn,
  snapshot: TurnSnapshot,
  deaths: number,
): Promise<boolean> {
  if (turn.definition.declared !== null && (await hasMovedCursor(turn, snapshot))) return true;
  const reason = `Its worker died ${deaths} times in a row while executing it; it is paused so that it does not take down more workers. Resume it when the cause is fixed.`;
  const error: Failure = { name: "QuarantineError", code: "QUARANTINED", message: reason };
  await turn.park(newEvent("run.paused", {}, { reason, error }));
  return false;
}

/** A moved cursor counts as progress. Checkpoints are not in the log, so the times of the cursor rows are read. */
async function hasMovedCursor(turn: CrashedTurn, { log }: TurnSnapshot): Promise<boolean> {
  const since = log.findLast((event) => event.type === "run.recovered")?.at ?? 0;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  return rows.some((row) => row.cursor !== null && row.at >= since);
}
