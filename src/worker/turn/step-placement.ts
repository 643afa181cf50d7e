/** Where the next step of a run is executed: here, or by workers that are for it. */
import type { TaskRouting } from "../../core/run/park.js";
import type { IdlePort, PhasePort, RunPort } from "./ports.js";

type PlacedTurn = RunPort & PhasePort & IdlePort & { placement: TaskRouting | null };

/** The next step is run here, or, if this worker is not for it, handed over to those that are. */
export function placeNextStep(turn: PlacedTurn, placement: TaskRouting, waitsFirst: boolean): void {
  const { definition, host, phase } = turn;
  if (definition.declared?.hasStepRouting !== true) return;
  turn.placement = placement;
  // Then the run is parked in any case, and wakes up where it belongs.
  if (waitsFirst || host.canExecute(placement.route, definition.version)) return;
  phase.isHandingOver = true;
  turn.scheduleIdleCheck();
}

/** Its step was interrupted so that other runs get their turn: if there are any, it is put back among those that wait. */
export function yieldToWaitingRuns({ host, phase }: PlacedTurn): void {
  if (host.hasWaitingRuns()) phase.isHandingOver = true;
}
