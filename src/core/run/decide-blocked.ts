/** Code that blocks the event loop of its worker: a run that did so twice is paused. */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { event } from "./event.js";
import type { Command } from "./stored-schema.js";

/** Twice is enough: each time, all runs of a worker stand still for a lease. */
export function recordBlocked(
  decision: Decision,
  { worker, session, step, by }: Extract<Command, { type: "blocked" }>,
): void {
  const { blocked } = decision.state;
  if (blocked !== null && [...blocked.values()].some((before) => before.session === session)) return;
  const about = { worker, session };
  if (by !== null) return void decision.events.push(event("run.blocked", {}, { ...about, by }));
  if (step === null) return void decision.events.push(event("run.blocked", {}, { ...about, suspected: true }));
  const place = step === "" ? {} : { node: step };
  decision.events.push(event("run.blocked", place, about));
  // Where it did so before does not matter: it is not always known.
  const [before] = blocked?.values() ?? [];
  if (before === undefined || decision.paused !== null || decision.cancelRequested) return;
  decision.paused = { resumeOn: null, recheckAt: null, node: step === "" ? null : step };
  decision.events.push(event("run.paused", place, blockedTwice(step, before.worker, worker)));
}

function blockedTwice(
  step: string,
  first: string,
  second: string,
): { readonly reason: string; readonly error: Failure } {
  const code = step === "" ? "Its code" : `Step "${step}"`;
  const reason = `${code} blocked the event loop of worker "${first}" and then of worker "${second}" until their leases were over; it is held so that it takes no more of them down. Code that computes for long belongs in a thread. Resume the run when that is mended.`;
  return { reason, error: { name: "QuarantineError", code: "QUARANTINED", message: reason } };
}
