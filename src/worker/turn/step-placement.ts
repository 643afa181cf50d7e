/** Decides whether this worker executes the next step of a run or hands the run over to other workers. */
import type { TaskRouting } from "../../core/run/park.js";
import type { IdlePort, PhasePort, RunPort } from "./ports.js";

type PlacedTurn = RunPort & PhasePort & IdlePort & { placement: TaskRouting | null };

/** If this worker may not execute the next step, the run is handed over to workers that may. */
export function placeNextStep(turn: PlacedTurn, placement: TaskRouting, waitsFirst: boolean): void {
  const { definition, host, phase } = turn;
  if (definition.declared?.hasStepRouting !== true) return;
  turn.placement = placement;
  // A run that waits first is parked anyway, and is then claimed by workers of the new route.
  if (waitsFirst || host.canExecute(placement.route, definition.version)) return;
  phase.isHandingOver = true;
  turn.scheduleIdleCheck();
}

/** A resumable step was interrupted; if other runs wait for this worker, the run is parked to let them run first. */
export function yieldToWaitingRuns({ host, phase }: PlacedTurn): void {
  if (host.hasWaitingRuns()) phase.isHandingOver = true;
}
