/** What a run waits for, from its state: for people, for the task that wakes it, and for its next owner. */
import { compensationKeyOf, isCompensation } from "./compensation.js";
import { hasEnded, isDispatched, type Op, type RunState } from "./state.js";
import { outerStep, scopeSeparator } from "./step-key.js";
import { onFailureStep } from "./step-name.js";
import type { Waiting } from "./stored-schema.js";

export function waitingFor(state: RunState): Waiting[] {
  const waiting: Waiting[] = [];
  if (state.reattemptAt !== null) waiting.push({ kind: "reattempt" });
  const isCompensating = isBeingCompensated(state);
  for (const [name, op] of state.ops) {
    // Its handler has ended: what that had waited for does not move the run any more.
    if (isCompensating && !isCompensationCall(name)) continue;
    if (op.kind === "timer" && op.phase === "open") waiting.push({ kind: "sleep", name });
    else if (op.kind === "wait" && op.phase === "open") waiting.push({ kind: "signal", names: op.names });
    // A step that is held waits for an operator, and that is said of the run when it is paused.
    else if (op.kind === "step" && op.phase === "awaiting_attempt" && (op.pauseCause === null || state.paused !== null))
      waiting.push({ kind: op.isScheduled ? "step" : "retry", step: name, attempt: op.attempt + 1 });
    else if (op.kind === "child" && op.phase === "open")
      waiting.push({ kind: "child", name, runId: op.runId, workflow: op.workflow });
    else if (op.kind === "map" && op.phase === "open") {
      waiting.push({ kind: "map", name, workflow: op.workflow, settled: op.endedCount, count: op.count });
    }
  }
  const dispatched = [...state.ops.values()].filter(isDispatched);
  const jobs = [...new Set(dispatched.map((op) => op.job as string))];
  if (dispatched.length > 0) waiting.push({ kind: "jobs", open: dispatched.length, jobs });
  return waiting;
}

function isBeingCompensated({ undoableSteps, cancelRequest, ops }: RunState): boolean {
  if (undoableSteps.length === 0) return false;
  return cancelRequest !== null || undoableSteps.some((step) => ops.has(compensationKeyOf(step)));
}

/** What undoes a step, what its body waits for, and `onFailure`. */
function isCompensationCall(key: string): boolean {
  const step = outerStep(key);
  return isCompensation(step) || step === onFailureStep;
}

/** The step that a run is at: of a chain, the one that has begun or is next, with its attempt. */
export function currentStep(state: RunState): { readonly name: string; readonly attempt: number } | null {
  if (state.stepStructure !== "chain") return null;
  for (const [name, op] of state.ops) {
    if (op.kind !== "step" || hasEnded(op) || name.includes(scopeSeparator)) continue;
    return { name, attempt: op.phase === "awaiting_attempt" ? op.attempt + 1 : op.attempt };
  }
  return null;
}

/** A step of a chain, as the code declares it. */
export interface ChainStep {
  readonly name: string;
  readonly waitMs?: number;
}

/** A step of which the log has nothing yet, and when it is due, if that is known. */
export interface NextStep {
  readonly name: string;
  readonly attempt: number;
  readonly dueAt: number | null;
}

/**
 * The step that a run of a chain comes to next, when none has begun or waits for its time: behind the last one that has
 * ended, or the first one.
 *
 * @param startsAt when a run that has not begun is to begin
 */
export function nextStep(state: RunState, chain: readonly ChainStep[], startsAt: number | null): NextStep | null {
  if (
    state.stepStructure === "graph" ||
    state.importedDag !== null ||
    state.ending !== null ||
    currentStep(state) !== null
  )
    return null;
  const chainIndexOf = (name: string) => chain.findIndex((step) => step.name === name);
  const isEndedStep = ([name, op]: [string, Op]) =>
    op.kind === "step" && hasEnded(op) && !name.includes(scopeSeparator) && chainIndexOf(name) >= 0;
  const last = [...state.ops].findLast(isEndedStep)?.[0];
  const step = chain[last === undefined ? Math.max(0, chainIndexOf(state.movedToStep ?? "")) : chainIndexOf(last) + 1];
  if (step === undefined) return null;
  const previousEndAt =
    last === undefined ? state.startedAt : state.answeredCalls.findLast(({ key }) => key === last)?.at;
  const baseAt = previousEndAt ?? startsAt;
  const attempt = (state.attemptsBeforeRewind?.get(step.name) ?? 0) + 1;
  return { name: step.name, attempt, dueAt: baseAt === null ? null : baseAt + (step.waitMs ?? 0) };
}

/**
 * When time alone gives the run something to do; null when only a message can. `awaited` leaves out what the code does
 * not ask for any more: it must not wake the run again and again.
 */
export function nextDueAt(state: RunState, isAwaited: (key: string) => boolean = () => true): number | null {
  if (state.paused !== null) return state.paused.recheckAt;
  let earliestAt = state.deadlineAt;
  const consider = (instant: number | null) => {
    if (instant !== null && (earliestAt === null || instant < earliestAt)) earliestAt = instant;
  };
  consider(state.reattemptAt);
  for (const [key, op] of state.ops) {
    const isOpen =
      ((op.kind === "timer" || op.kind === "wait") && op.phase === "open") ||
      (op.kind === "step" && op.phase === "awaiting_attempt" && op.pauseCause === null);
    if (isOpen && isAwaited(key)) consider(op.dueAt);
    if (op.kind === "step" && op.phase === "started" && isAwaited(key)) consider(op.deadlineAt);
  }
  return earliestAt;
}
