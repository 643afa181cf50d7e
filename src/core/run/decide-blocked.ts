/** Decides about runs whose code has blocked the event loop of a worker. */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import type { Command } from "./stored-schema.js";

/**
 * Records that the event loop of the run's worker was blocked: by another run (`by`), by this run (`step`), or by unknown
 * code. If this run's code has done it, and was the cause or a suspect of an earlier block, the run is paused, because each
 * block stops all runs of the worker until its lease expires.
 */
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
  // An earlier block at another step, or at an unknown place, also leads to the pause.
  const [earlierBlock] = blockedWorkers?.values() ?? [];
  if (earlierBlock === undefined || decision.paused !== null || decision.isCancelRequested) return;
  decision.paused = { resumeOn: null, recheckAt: null, node: step === "" ? null : step };
  decision.events.push(newEvent("run.paused", columns, pauseForBlockingTwice(step, earlierBlock.workerName, worker)));
}

function pauseForBlockingTwice(
  step: string,
  firstWorker: string,
  secondWorker: string,
): { readonly reason: string; readonly error: Failure } {
  const code = step === "" ? "Its code" : `Step "${step}"`;
  const reason = `${code} blocked the event loop of worker "${firstWorker}" and then of worker "${secondWorker}" until their leases expired. The run is paused so that it does not block more workers. Move long computations to a worker thread, then resume the run.`;
  return { reason, error: { name: "QuarantineError", code: "QUARANTINED", message: reason } };
}
