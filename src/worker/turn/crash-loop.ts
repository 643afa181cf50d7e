/** Crash-loop protection: a run whose workers keep dying is paused, unless it made progress in between. */

import type { Failure } from "../../core/encoding/error-record.js";
import { newEvent } from "../../core/run/event.js";
import type { RunPort, TurnEndPort, WritePort } from "./ports.js";
import { readForTurn } from "./read.js";
import type { TurnSnapshot } from "./turn-host.js";

type CrashedTurn = RunPort & WritePort & Pick<TurnEndPort, "park">;

/** How many workers have died with this run since a worker last recorded progress. */
export function countWorkerDeaths({ deliveries, state }: CrashedTurn, { inbox }: TurnSnapshot): number {
  // A death by a blocked event loop is counted separately, against the run whose code blocked it.
  const blocked = inbox.some(({ kind }) => kind === "blocked") ? 1 : 0;
  return deliveries - Math.min(deliveries, state.lastProductiveDelivery + blocked);
}

/** False when the run was paused. */
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

/** A moved cursor is progress. Checkpoints are not in the log, so the cursor rows are read for their times. */
async function hasMovedCursor(turn: CrashedTurn, { log }: TurnSnapshot): Promise<boolean> {
  const since = log.findLast((event) => event.type === "run.recovered")?.at ?? 0;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  return rows.some((row) => row.cursor !== null && row.at >= since);
}
