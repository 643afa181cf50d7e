/** A run that takes down every worker that touches it is held, unless it got further each time. */

import type { Failure } from "../../core/encoding/error-record.js";
import { newEvent } from "../../core/run/event.js";
import type { RunPort, TurnEndPort, WritePort } from "./ports.js";
import { readForTurn } from "./read.js";
import type { TurnSnapshot } from "./turn-host.js";

type CrashedTurn = RunPort & WritePort & Pick<TurnEndPort, "park">;

/** How often its workers have died since a worker last recorded something. */
export function countWorkerDeaths({ deliveries, state }: CrashedTurn, { inbox }: TurnSnapshot): number {
  // That its worker's event loop was blocked is counted apart, against the run whose code did it.
  const blocked = inbox.some(({ kind }) => kind === "blocked") ? 1 : 0;
  return deliveries - Math.min(deliveries, state.lastProductiveDelivery + blocked);
}

/** Comes back with false when the run is held. */
export async function passesCrashLoopCheck(
  turn: CrashedTurn,
  snapshot: TurnSnapshot,
  deaths: number,
): Promise<boolean> {
  if (turn.definition.declared !== null && (await hasMovedCursor(turn, snapshot))) return true;
  const reason = `Its worker died ${deaths} times in a row while executing it; it is held so that it does no more harm. Resume it when the cause is gone.`;
  const error: Failure = { name: "QuarantineError", code: "QUARANTINED", message: reason };
  await turn.park(newEvent("run.paused", {}, { reason, error }));
  return false;
}

/** Checkpoints are not in the log: their row says when the last one was. */
async function hasMovedCursor(turn: CrashedTurn, { log }: TurnSnapshot): Promise<boolean> {
  const since = log.findLast((event) => event.type === "run.recovered")?.at ?? 0;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  return rows.some((row) => row.cursor !== null && row.at >= since);
}
