/** What becomes of the calls whose children, or whose jobs, have ended. */
import type { Failure } from "../encoding/error-record.js";
import type { Decision } from "./decision.js";
import { event } from "./event.js";
import { indexes, rangesOf } from "./ranges.js";
import { isDispatched } from "./state.js";
import { callOfChild } from "./step-key.js";
import type { Command, NodeResult } from "./stored-schema.js";

export function childEnded(
  decision: Decision,
  { node: from, status, output, error, reason }: Extract<Command, { type: "child" }>,
): void {
  const node = callOfChild(decision.state, from);
  const op = decision.state.ops.get(node);
  if (op?.kind !== "child" || op.phase !== "open") return;
  if (status === "completed")
    decision.events.push(event("child.completed", { node }, {}, output === null ? {} : { output }));
  else if (status === "failed") decision.events.push(event("child.failed", { node }, { error: error as Failure }));
  else decision.events.push(event("child.canceled", { node }, reason === null ? {} : { reason }));
}

export function childrenEnded(
  decision: Decision,
  { node: from, completed, failed }: Extract<Command, { type: "children" }>,
): void {
  const node = callOfChild(decision.state, from);
  const op = decision.state.ops.get(node);
  if (op?.kind !== "map") return;
  let settled = decision.settled.get(node);
  if (settled === undefined) decision.settled.set(node, (settled = { completed: [], failed: [], ended: new Set() }));
  for (const [numbers, ranges] of [
    [settled.completed, completed],
    [settled.failed, failed],
  ] as const) {
    for (const index of indexes(ranges)) {
      if (op.ended.has(index) || settled.ended.has(index)) continue;
      settled.ended.add(index);
      numbers.push(index);
    }
  }
}

/** One event per map and decision, however many children have ended. */
export function settleMaps(decision: Decision): void {
  for (const [node, { completed, failed }] of decision.settled) {
    if (completed.length + failed.length === 0) continue;
    decision.events.push(event("map.settled", { node }, { completed: rangesOf(completed), failed: rangesOf(failed) }));
  }
}

export function nodeEnded(decision: Decision, { node: from, attempt, output, error, retryMs, ms }: NodeResult): void {
  const node = callOfChild(decision.state, from);
  const op = decision.state.ops.get(node);
  if (op === undefined || !isDispatched(op) || op.attempt !== attempt || decision.nodesEnded.has(node)) return;
  decision.nodesEnded.add(node);
  if (output !== null) {
    decision.events.push(event("step.completed", { node, attempt, outcome: "success" }, { ms }, { output }));
    return;
  }
  const outcome = retryMs === null ? "failed_by_exception" : "reattempted_by_exception";
  const data = { error: error as Failure, ms, ...(retryMs === null ? {} : { retryMs }) };
  decision.events.push(event("step.failed", { node, attempt, outcome }, data));
}
