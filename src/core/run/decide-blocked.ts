/** Code that blocks the event loop of its worker: a run that did so twice is paused. */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import type { Command } from "./stored-schema.js";

/** Twice is enough: each time, all runs of a worker stand still for a lease. */
export function recordBlocked(
  decision: Decision,
  { worker, session, step, by }: Extract<Command, { type: "blocked" }>,
): void {
  const { blockedWorkers } = decision.state;
  if (blockedWorkers !== null && [...blockedWorkers.values()].some((earlierBlock) => earlierBlock.session === session))
    return;
  const workerData = { worker, session };
  if (by !== null) return void decision.events.push(newEvent("run.blocked", {}, { ...workerData, by }));
  if (step === null) return void decision.events.push(newEvent("run.blocked", {}, { ...workerData, suspected: true }));
  const columns = step === "" ? {} : { node: step };
  decision.events.push(newEvent("run.blocked", columns, workerData));
  // Where it did so before does not matter: it is not always known.
  const [earlierBlock] = blockedWorkers?.values() ?? [];
  if (earlierBlock === undefined || decision.paused !== null || decision.isCancelRequested) return;
  decision.paused = { resumeOn: null, recheckAt: null, node: step === "" ? null : step };
  decision.events.push(newEvent("run.paused", columns, pauseForBlockingTwice(step, earlierBlock.workerName, worker)));
}

function pauseForBlockingTwice(
  step: string,
  first: string,
  second: string,
): { readonly reason: string; readonly error: Failure } {
  const code = step === "" ? "Its code" : `Step "${step}"`;
  const reason = `${code} blocked the event loop of worker "${first}" and then of worker "${second}" until their leases were over; it is held so that it takes no more of them down. Code that computes for long belongs in a thread. Resume the run when that is mended.`;
  return { reason, error: { name: "QuarantineError", code: "QUARANTINED", message: reason } };
}
