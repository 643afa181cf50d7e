/** Decides about the commands of operators. */
import { InvalidStateError } from "../errors/errors.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import { cancelData, expiredCode, expiredReason } from "./cancel-reason.js";
import type { Decision } from "./decision.js";
import { newEvent } from "./event.js";
import { isDispatched, type RunState, statusOf } from "./state.js";
import type { Command } from "./stored-schema.js";

export function pauseRun(decision: Decision, reason: string | null): void {
  if (decision.paused !== null) throw new InvalidStateError("The run is paused already.");
  if (decision.isCancelRequested)
    throw new InvalidStateError("The run is being canceled and cannot be paused any more.");
  decision.paused = { resumeOn: null, recheckAt: null, node: null };
  decision.events.push(newEvent("run.paused", {}, { reason: reason ?? "Paused by an operator." }));
}

export function resumeRun(
  decision: Decision,
  { output, accept, renamed }: Extract<Command, { type: "resume" }>,
  isUnowned: boolean,
): void {
  if (decision.paused === null)
    throw new InvalidStateError(`The run is ${statusOf(decision.state)}, not paused; there is nothing to resume.`);
  const changes = { ...(accept && { accept }), ...(renamed && { renamed }) };
  if (output === null) {
    reopenFailedNodes(decision);
    return decision.resume("operator", changes);
  }
  const { key, attempt } = findStuckStep(decision, isUnowned);
  decision.endedSteps.add(key);
  decision.events.push(
    newEvent("step.completed", { node: key, attempt, outcome: "success" }, { by: "operator" }, { output }),
  );
  decision.resume("operator", { onlyStep: key, ...changes });
}

/** When a run is paused because a node of its graph failed, a resume attempts all failed nodes again. */
function reopenFailedNodes(decision: Decision): void {
  const stuckOp = decision.paused?.node == null ? undefined : decision.state.ops.get(decision.paused.node);
  if (stuckOp?.kind !== "step" || stuckOp.phase !== "failed") return;
  for (const [node, op] of decision.state.ops)
    if (op.kind === "step" && op.phase === "failed")
      decision.events.push(newEvent("node.reopened", { node, attempt: op.attempt }));
}

export function moveToStep(decision: Decision, step: string): void {
  if (decision.paused === null)
    throw new InvalidStateError(
      `The run is ${statusOf(decision.state)}, not paused; pause it before you move it to another step.`,
    );
  if (decision.state.stepStructure !== "chain")
    throw new InvalidStateError(
      decision.state.startedAt === null
        ? "The run has not started, so there is no step to resume at."
        : "The run has no chain of steps: resumeAt is for workflow classes.",
    );
  decision.events.push(newEvent("run.moved", {}, { to: step }));
  decision.resume("operator");
}

export function skipStep(decision: Decision, isUnowned: boolean): void {
  const { key, attempt } = findStuckStep(decision, isUnowned);
  decision.endedSteps.add(key);
  decision.events.push(
    newEvent("step.skipped", { node: key, attempt, outcome: "skipped_by_flow_control" }, { by: "operator" }),
  );
  if (decision.paused !== null) decision.resume("operator", { onlyStep: key });
}

/**
 * The step that an operator can skip or provide an output for, and the number of the attempt that it runs or waits to
 * start. A step whose body is running is not stuck: the result of the body will be recorded, and a step has only one. For the
 * same reason, a step that an earlier command of this decision has ended is none of them.
 */
function findStuckStep(decision: Decision, isUnowned = false): { readonly key: string; readonly attempt: number } {
  const { endedSteps } = decision;
  if (decision.paused?.node != null) {
    const isEnded = endedSteps.has(decision.paused.node);
    const op = decision.state.ops.get(decision.paused.node);
    if (isEnded) throw new InvalidStateError(describeNotStuck(decision));
    if (op?.kind === "step" && (op.phase === "started" || op.phase === "awaiting_attempt"))
      return { key: decision.paused.node, attempt: op.phase === "awaiting_attempt" ? op.attempt + 1 : op.attempt };
    // The run is paused at a step that was never attempted, because no worker has the step's job.
    if (op === undefined) return { key: decision.paused.node, attempt: 1 };
    if (op.kind === "step" && op.phase === "failed") {
      // A failed node must be reopened first: it has a result, and `fold` would ignore a second result.
      decision.events.push(newEvent("node.reopened", { node: decision.paused.node, attempt: op.attempt }));
      return { key: decision.paused.node, attempt: op.attempt + 1 };
    }
  } else {
    for (const [key, op] of decision.state.ops)
      if (op.kind === "step" && op.phase === "awaiting_attempt" && !decision.isExecuting(key) && !endedSteps.has(key))
        return { key, attempt: op.attempt + 1 };
    for (const [key, op] of decision.state.ops)
      if (isUnowned && !endedSteps.has(key) && op.kind === "step" && op.phase === "started" && !isDispatched(op))
        return { key, attempt: op.attempt };
  }
  throw new InvalidStateError(describeNotStuck(decision));
}

/**
 * The step that an operator wants to skip or provide an output for while the body of its next attempt is running. The command is
 * decided about when the attempt has ended, because what the body returns counts.
 */
export function findExecutingStep(
  state: RunState,
  command: Command,
  isExecuting: (key: string) => boolean,
): string | null {
  const isAboutStep = command.type === "skip" || (command.type === "resume" && command.output !== null);
  if (!isAboutStep || state.paused?.node != null || (command.type === "resume" && state.paused === null)) return null;
  let executing: string | null = null;
  for (const [key, op] of state.ops) {
    if (op.kind !== "step") continue;
    if (op.phase === "awaiting_attempt" && !isExecuting(key)) return null;
    // The start of an attempt that takes long is recorded while it runs.
    if (op.phase === "awaiting_attempt" || (op.phase === "started" && isExecuting(key))) executing ??= key;
  }
  return executing;
}

/** The error message that says why `skip()` and `resume({ output })` are not possible, and which calls are. */
function describeNotStuck(decision: Decision): string {
  const message = "The run is not stuck at a step: there is nothing to skip or to provide an output for.";
  if (decision.state.paused?.error?.code !== "NON_DETERMINISM") return message;
  return `${message} Its code does not fit its log: deploy code that does and resume(), declare the differences with resume({ accept, renamed }), or end the run with cancel(reason, { force: true }).`;
}

/**
 * Records the request to cancel the run. The run's next owner cancels the children, compensates, and ends the run. A client
 * itself ends a parked run that is canceled by force, or that has neither children nor steps to compensate.
 */
export function cancelRun(
  decision: Decision,
  { reason, force }: Pick<Extract<Command, { type: "cancel" }>, "reason" | "force">,
  code: string | null = null,
): void {
  if (decision.isCancelRequested && !(force === true && !decision.isCancelForced)) return;
  decision.isCancelRequested = true;
  decision.isCancelForced = force === true;
  if (decision.paused !== null) decision.resume("operator");
  const data = { ...cancelData(reason, code), ...(force === true ? { force } : {}) };
  decision.events.push(newEvent("run.cancel_requested", {}, data));
}

/**
 * Cancels a run that has not begun by its start deadline. A run that has begun is left alone, and so is one whose deadline
 * was replaced after the sender of the command had read it.
 */
export function cancelUnstarted(decision: Decision, startBy: number): void {
  const { startedAt, replacedStartBy } = decision.state;
  const isCurrent = replacedStartBy === undefined || replacedStartBy === startBy;
  if (startedAt === null && isCurrent) cancelRun(decision, { reason: expiredReason(startBy) }, expiredCode);
}

export function reattemptNode(
  decision: Decision,
  { node, descendants }: Extract<Command, { type: "reattempt" }>,
): void {
  const op = decision.state.ops.get(node);
  if (op?.kind !== "step") throw new InvalidStateError(`Node "${node}" has not been attempted yet.`);
  if (op.phase === "completed")
    throw new InvalidStateError(`Node "${node}" has completed; its output cannot be replaced.`);
  if (op.phase === "started") throw new InvalidStateError(`Node "${node}" is being executed.`);
  const startedDescendant = descendants.find((descendant) => {
    const descendantOp = decision.state.ops.get(descendant);
    return descendantOp?.kind === "step" && (descendantOp.phase === "completed" || descendantOp.phase === "started");
  });
  if (startedDescendant !== undefined)
    throw new InvalidStateError(
      `Node "${node}" cannot be attempted again: "${startedDescendant}" depends on it and has already started.`,
    );
  decision.events.push(newEvent("node.reopened", { node, attempt: op.attempt }));
  if (decision.paused !== null) decision.resume("operator", { onlyStep: node });
}

export function importDag(decision: Decision, dag: FrozenDag): void {
  if (decision.paused === null && decision.state.startedAt !== null)
    throw new InvalidStateError(`The run is ${statusOf(decision.state)}; pause it before you change its graph.`);
  decision.events.push(newEvent("dag.imported", {}, { dag }));
}
