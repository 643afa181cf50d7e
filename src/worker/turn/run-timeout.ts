/** What a turn does when the time limit of its run has passed. */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { openCompensations } from "../../core/run/compensation.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { isTerminalEvent } from "../../core/run/terminal-event.js";
import { endExpired } from "./idle.js";
import type { WholeTurn } from "./ports.js";
import { endRun } from "./run-end.js";
import { pauseRunOnError } from "./user-code.js";

/** @param events the events that the inbox check has decided, including the `run.failed` event that would end the run */
export function handleRunTimeout(turn: WholeTurn, events: readonly NewEvent[], error: Failure): Promise<void> | void {
  if (turn.state.timeoutFailure !== null || turn.phase.isUnwinding) return;
  const eventsBeforeEnd = events.filter((event) => !isTerminalEvent(event));
  const mustCompensate = openCompensations(turn.state).length > 0;
  if (turn.definition.onFailure !== null || mustCompensate) return recordExpiry(turn, eventsBeforeEnd, error);
  return endRun(turn, { status: "failed", events: eventsBeforeEnd, output: null, error });
}

/** The timeout is recorded because compensation and onFailure may take several turns, which must not time out again. */
async function recordExpiry(turn: WholeTurn, eventsBeforeEnd: readonly NewEvent[], error: Failure): Promise<void> {
  if (!(await turn.submit([...eventsBeforeEnd, newEvent("run.expired", {}, { error })]))) return;
  turn.abort(reviveFailure(error));
  pauseRunOnError(turn, () => endExpired(turn, error));
}
