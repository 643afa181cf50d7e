/** Finds the children that a run no longer waits for, and makes the messages that cancel them. */

import { attemptRunId, childRunId } from "../naming/ids.js";
import { dataOf, type NewEvent } from "./event.js";
import { stepsWithReplacedJob } from "./job-runs.js";
import { encodeMessage, type Message } from "./message.js";
import { isDispatched, type MapOp, type RunState } from "./state.js";
import { readStepFacts } from "./step-completed.js";
import { childNode, scopeOf } from "./step-key.js";

/** Returns messages that cancel the children which the run no longer waits for after these new events. */
export function cancelUnawaitedChildren(runId: string, state: RunState, events: readonly NewEvent[]): Message[] {
  return events.flatMap((event) => {
    const { type, node } = event;
    if (type === "run.moved") return cancelChildren(runId, state);
    if (type === "dag.imported")
      return stepsWithReplacedJob(state, dataOf(event, "dag.imported").dag).flatMap((step) =>
        cancelJob(runId, state, step),
      );
    if (node === null || state.stepStructure === null) return [];
    return type === "step.skipped" || isCompletedByOperator(event) ? cancelJob(runId, state, node) : [];
  });
}

/**
 * Returns messages that cancel the dispatched run of the step's job, if any, and the children that the step's body awaits.
 */
function cancelJob(runId: string, state: RunState, step: string): Message[] {
  const op = state.ops.get(step);
  const jobMessages =
    op !== undefined && isDispatched(op) ? [cancelMessageTo(nodeRunId(runId, state, step, op.attempt))] : [];
  return [...jobMessages, ...cancelChildren(runId, state, scopeOf(step))];
}

const isCompletedByOperator = ({ type, data }: NewEvent) =>
  type === "step.completed" && readStepFacts(data).by === "operator";

/**
 * Returns messages that cancel all children that the run waits for, or only the children of calls whose keys begin with
 * `scope`.
 */
export function cancelChildren(runId: string, state: RunState, scope = ""): Message[] {
  const messages: Message[] = [];
  for (const [key, op] of state.ops) {
    if (!key.startsWith(scope)) continue;
    if (op.kind === "child" && op.phase === "open") messages.push(cancelMessageTo(op.runId));
    if (isDispatched(op)) messages.push(cancelMessageTo(nodeRunId(runId, state, key, op.attempt)));
    if (op.kind === "map" && op.phase !== "settled") messages.push(...cancelMapChildren(runId, state, key, op));
  }
  return messages;
}

/** @param endedIndexes the indexes of children that have ended, but whose end is not folded into the state yet */
export function cancelMapChildren(
  runId: string,
  state: RunState,
  key: string,
  op: MapOp,
  endedIndexes: ReadonlySet<number> = new Set(),
): Message[] {
  const node = childNode(state, key);
  const messages: Message[] = [];
  for (let index = 0; index < op.spawnedCount; index += 1) {
    if (!op.endedIndexes.has(index) && !endedIndexes.has(index))
      messages.push(cancelMessageTo(childRunId(runId, node, index)));
  }
  return messages;
}

/** The id of the run that executes this attempt at a node. */
export function nodeRunId(runId: string, state: RunState, key: string, attempt: number): string {
  return attemptRunId(runId, childNode(state, key), attempt);
}

const cancelMessageTo = (runId: string): Message =>
  encodeMessage(runId, { type: "cancel", reason: "Its parent run has ended." });

/** Whether the run has children that have to be canceled together with it. */
export function hasOpenChildren(state: RunState): boolean {
  for (const op of state.ops.values())
    if (((op.kind === "child" || op.kind === "map") && op.phase === "open") || isDispatched(op)) return true;
  return false;
}
