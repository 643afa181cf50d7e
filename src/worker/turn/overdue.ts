/** The time limit of a run has passed. */
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { openCompensations } from "../../core/run/compensation.js";
import { event, type NewEvent } from "../../core/run/event.js";
import { isEnding } from "../../core/run/terminal-event.js";
import { conclude } from "./finish.js";
import { endExpired } from "./idle.js";
import type { WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

/** @param events what was decided, the end of the run included */
export function overdue(turn: WholeTurn, events: readonly NewEvent[], error: Failure): Promise<void> | void {
  if (turn.state.expired !== null || turn.phase.unwinding) return;
  const before = events.filter((one) => !isEnding(one));
  const mustUndo = openCompensations(turn.state).length > 0;
  if (turn.definition.onFailure !== null || mustUndo) return expire(turn, before, error);
  return conclude(turn, { status: "failed", events: before, output: null, error });
}

/** In the log, so that the code is told once: an attempt at what is left may have to wait for its time. */
async function expire(turn: WholeTurn, before: readonly NewEvent[], error: Failure): Promise<void> {
  if (!(await turn.submit([...before, event("run.expired", {}, { error })]))) return;
  turn.abort(reviveFailure(error));
  pauseIfItFails(turn, () => endExpired(turn, error));
}
