/**
 * Decides about everything that has become due: timers, timeouts of waits, rechecks of pauses, the time limit of the run.
 */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";

/**
 * Fires due timers in the order of their due times. In a paused run no timer fires until the recheck of the pause is due.
 */
export function fireDueTimers(decision: Decision, now: number): void {
  if (decision.isEnded || decision.isCancelRequested) return;
  if (decision.paused !== null) {
    if (decision.paused.recheckAt === null || decision.paused.recheckAt > now) return;
    decision.resume("recheck");
  }
  for (let timer = decision.openTimers[0]; timer !== undefined && timer.dueAt <= now; timer = decision.openTimers[0]) {
    decision.openTimers.shift();
    if (timer.wait === null) {
      decision.events.push(newEvent("timer.fired", { node: timer.key }));
    } else if (decision.openWaits.includes(timer.wait)) {
      decision.openWaits.splice(decision.openWaits.indexOf(timer.wait), 1);
      decision.events.push(newEvent("wait.timed_out", { node: timer.key }));
    }
  }
  if (decision.reattemptAt !== null && decision.reattemptAt <= now) {
    decision.reattemptAt = null;
    decision.events.push(newEvent("run.woken", {}));
  }
  failIfOverdue(decision, now);
}

function failIfOverdue(decision: Decision, now: number): void {
  const { deadlineAt, startedAt } = decision.state;
  if (deadlineAt === null || deadlineAt > now) return;
  decision.isEnded = true;
  const limitMs = deadlineAt - (startedAt ?? deadlineAt);
  const error: Failure = {
    name: "TimeoutError",
    code: "TIMEOUT",
    message: `The run did not finish within its time limit of ${limitMs} ms.`,
  };
  decision.events.push(newEvent("run.failed", {}, { error }));
}
