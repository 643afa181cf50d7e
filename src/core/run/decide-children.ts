/** Decides about calls whose children or jobs have ended. */
import type { Failure } from "../encoding/error-record.js";
import { cancelData } from "./cancel-reason.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import { expandRanges, rangesOf } from "./ranges.js";
import { isDispatched } from "./state.js";
import { callOfChild } from "./step-key.js";
import type { Command, NodeResult } from "./stored-schema.js";

export function recordChildEnd(
  decision: Decision,
  { node: senderNode, status, output, error, reason, code }: Extract<Command, { type: "child" }>,
): void {
  const node = callOfChild(decision.state, senderNode);
  const op = decision.state.ops.get(node);
  if (op?.kind !== "child" || op.phase !== "open") return;
  if (status === "completed")
    decision.events.push(newEvent("child.completed", { node }, {}, output === null ? {} : { output }));
  else if (status === "failed") decision.events.push(newEvent("child.failed", { node }, { error: error as Failure }));
  else decision.events.push(newEvent("child.canceled", { node }, cancelData(reason, code)));
}

/**
 * Collects the ends of map children, which `recordEndedMapChildren` turns into events. A child whose end is already
 * recorded or collected is ignored, because its message may arrive twice.
 */
export function collectMapChildEnds(
  decision: Decision,
  { node: senderNode, completed, failed }: Extract<Command, { type: "children" }>,
): void {
  const node = callOfChild(decision.state, senderNode);
  const op = decision.state.ops.get(node);
  if (op?.kind !== "map") return;
  let endedChildren = decision.endedMapChildren.get(node);
  if (endedChildren === undefined)
    decision.endedMapChildren.set(node, (endedChildren = { completed: [], failed: [], ended: new Set() }));
  for (const [endedIndexes, ranges] of [
    [endedChildren.completed, completed],
    [endedChildren.failed, failed],
  ] as const) {
    for (const index of expandRanges(ranges)) {
      if (op.endedIndexes.has(index) || endedChildren.ended.has(index)) continue;
      endedChildren.ended.add(index);
      endedIndexes.push(index);
    }
  }
}

/** Records the collected ends of map children as one event per map, however many children have ended. */
export function recordEndedMapChildren(decision: Decision): void {
  for (const [node, { completed, failed }] of decision.endedMapChildren) {
    if (completed.length + failed.length === 0) continue;
    decision.events.push(
      newEvent("map.settled", { node }, { completed: rangesOf(completed), failed: rangesOf(failed) }),
    );
  }
}

export function recordNodeEnd(
  decision: Decision,
  { node: senderNode, attempt, output, error, retryMs, ms }: NodeResult,
): void {
  const node = callOfChild(decision.state, senderNode);
  const op = decision.state.ops.get(node);
  if (op === undefined || !isDispatched(op) || op.attempt !== attempt || decision.endedSteps.has(node)) return;
  decision.endedSteps.add(node);
  if (output !== null) {
    decision.events.push(newEvent("step.completed", { node, attempt, outcome: "success" }, { ms }, { output }));
    return;
  }
  const outcome = retryMs === null ? "failed_by_exception" : "reattempted_by_exception";
  const data = { error: error as Failure, ms, ...(retryMs === null ? {} : { retryMs }) };
  decision.events.push(newEvent("step.failed", { node, attempt, outcome }, data));
}
