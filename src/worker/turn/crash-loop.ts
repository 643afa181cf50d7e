/** A run that takes down every worker that touches it is held, unless it got further each time. */

import type { Failure } from "../../core/encoding/error-record.js";
import { event } from "../../core/run/event.js";
import type { Opening } from "./host.js";
import type { Leaving, RunAtHand, RunWriting } from "./ports.js";
import { readForTurn } from "./read.js";

type CrashedTurn = RunAtHand & RunWriting & Pick<Leaving, "park">;

/** How often its workers have died since a worker last recorded something. */
export function deathsOf({ deliveries, state }: CrashedTurn, { inbox }: Opening): number {
  // That its worker's event loop was blocked is counted apart, against the run whose code did it.
  const blocked = inbox.some(({ kind }) => kind === "blocked") ? 1 : 0;
  return deliveries - Math.min(deliveries, state.survived + blocked);
}

/** Comes back with false when the run is held. */
export async function survives(turn: CrashedTurn, opening: Opening, deaths: number): Promise<boolean> {
  if (turn.definition.declared !== null && (await movedItsCursor(turn, opening))) return true;
  const reason = `Its worker died ${deaths} times in a row while executing it; it is held so that it does no more harm. Resume it when the cause is gone.`;
  const error: Failure = { name: "QuarantineError", code: "QUARANTINED", message: reason };
  await turn.park(event("run.paused", {}, { reason, error }));
  return false;
}

/** Checkpoints are not in the log: their row says when the last one was. */
async function movedItsCursor(turn: CrashedTurn, { log }: Opening): Promise<boolean> {
  const since = log.findLast((one) => one.type === "run.recovered")?.at ?? 0;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  return rows.some((row) => row.cursor !== null && row.at >= since);
}
