/** What becomes due by itself: timers, the limits of waits, rechecks, the time limit of the run. */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { event } from "./event.js";

/** Fires what is due, in the order in which it became due. Time stands still for a paused run, but for its recheck. */
export function passTime(decision: Decision, now: number): void {
  if (decision.ended || decision.cancelRequested) return;
  if (decision.paused !== null) {
    if (decision.paused.recheckAt === null || decision.paused.recheckAt > now) return;
    decision.resume("recheck");
  }
  for (let timer = decision.timers[0]; timer !== undefined && timer.dueAt <= now; timer = decision.timers[0]) {
    decision.timers.shift();
    if (timer.wait === null) {
      decision.events.push(event("timer.fired", { node: timer.key }));
    } else if (decision.waits.includes(timer.wait)) {
      decision.waits.splice(decision.waits.indexOf(timer.wait), 1);
      decision.events.push(event("wait.timed_out", { node: timer.key }));
    }
  }
  if (decision.reattemptAt !== null && decision.reattemptAt <= now) {
    decision.reattemptAt = null;
    decision.events.push(event("run.woken", {}));
  }
  failIfOverdue(decision, now);
}

function failIfOverdue(decision: Decision, now: number): void {
  const { deadlineAt, startedAt } = decision.state;
  if (deadlineAt === null || deadlineAt > now) return;
  decision.ended = true;
  const allowed = deadlineAt - (startedAt ?? deadlineAt);
  const error: Failure = {
    name: "TimeoutError",
    code: "TIMEOUT",
    message: `The run did not finish within its time limit of ${allowed} ms.`,
  };
  decision.events.push(event("run.failed", {}, { error }));
}
