/** Decides whether this worker executes the next step of a run or hands the run over to other workers. */
import type { TaskRouting } from "../../core/run/park.js";
import type { IdlePort, PhasePort, RunPort } from "./ports.js";

type PlacedTurn = RunPort & PhasePort & IdlePort & { placement: TaskRouting | null };

/** @param waitsFirst whether the step starts only after a wait */
export function placeNextStep(turn: PlacedTurn, placement: TaskRouting, waitsFirst: boolean): void {
  const { definition, host, phase } = turn;
  if (definition.declared?.hasStepRouting !== true) return;
  turn.placement = placement;
  // If the step waits first, the run is parked anyway, and workers of the step's route claim it after the wait.
  if (waitsFirst || host.canExecute(placement.route, definition.version)) return;
  phase.isHandingOver = true;
  turn.scheduleIdleCheck();
}

/**
 * Called when a resumable step was interrupted. If other runs wait for this worker, the run is parked so that they run
 * first.
 */
export function yieldToWaitingRuns({ host, phase }: PlacedTurn): void {
  if (host.hasWaitingRuns()) phase.isHandingOver = true;
}
