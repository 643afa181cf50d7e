/** Children that no run waits for any more are canceled: who they are, and the messages that tell them. */

import { attemptRunId, childRunId } from "../naming/ids.js";
import { dataOf, type NewEvent } from "./event.js";
import { stepsWithAnotherJob } from "./job-runs.js";
import { type Message, writeMail } from "./message.js";
import { isDispatched, type MapOp, type RunState } from "./state.js";
import { readStepFacts } from "./step-completed.js";
import { childNode, scopeOf } from "./step-key.js";

/** What commands have decided may leave children that no run waits for. */
export function dismissedBy(runId: string, state: RunState, events: readonly NewEvent[]): Message[] {
  return events.flatMap((one) => {
    const { type, node } = one;
    if (type === "run.moved") return dismissChildren(runId, state);
    if (type === "dag.imported")
      return stepsWithAnotherJob(state, dataOf(one, "dag.imported").dag).flatMap((step) =>
        dismissJob(runId, state, step),
      );
    if (node === null || state.steps === null) return [];
    return type === "step.skipped" || isByOperator(one) ? dismissJob(runId, state, node) : [];
  });
}

/** The run of its job if it was handed out, and all that its body waits for. */
function dismissJob(runId: string, state: RunState, step: string): Message[] {
  const op = state.ops.get(step);
  const own = op !== undefined && isDispatched(op) ? [dismissal(nodeRunId(runId, state, step, op.attempt))] : [];
  return [...own, ...dismissChildren(runId, state, scopeOf(step))];
}

const isByOperator = ({ type, data }: NewEvent) => type === "step.completed" && readStepFacts(data).by === "operator";

/** All that the run still waits for; or those of one scope of it. */
export function dismissChildren(runId: string, state: RunState, scope = ""): Message[] {
  const mails: Message[] = [];
  for (const [key, op] of state.ops) {
    if (!key.startsWith(scope)) continue;
    if (op.kind === "child" && op.phase === "open") mails.push(dismissal(op.runId));
    if (isDispatched(op)) mails.push(dismissal(nodeRunId(runId, state, key, op.attempt)));
    if (op.kind === "map" && op.phase !== "settled") mails.push(...dismissMap(runId, state, key, op));
  }
  return mails;
}

export function dismissMap(
  runId: string,
  state: RunState,
  key: string,
  op: MapOp,
  ended: ReadonlySet<number> = new Set(),
): Message[] {
  const node = childNode(state, key);
  const mails: Message[] = [];
  for (let index = 0; index < op.spawned; index += 1) {
    if (!op.ended.has(index) && !ended.has(index)) mails.push(dismissal(childRunId(runId, node, index)));
  }
  return mails;
}

/** The run that executes this attempt at a node. */
export function nodeRunId(runId: string, state: RunState, key: string, attempt: number): string {
  return attemptRunId(runId, childNode(state, key), attempt);
}

const dismissal = (runId: string): Message => writeMail(runId, { type: "cancel", reason: "Its parent run has ended." });

/** Whether cancelling has to reach further than the run itself. */
export function hasOpenChildren(state: RunState): boolean {
  for (const op of state.ops.values())
    if (((op.kind === "child" || op.kind === "map") && op.phase === "open") || isDispatched(op)) return true;
  return false;
}
