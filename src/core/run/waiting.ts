/** Computes from a run's state what the run waits for (for display), and when its task becomes due. */
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
    // While steps are compensated the handler has ended, so the run no longer waits for the handler's calls.
    if (isCompensating && !isCompensationCall(name)) continue;
    if (op.kind === "timer" && op.phase === "open") waiting.push({ kind: "sleep", name });
    else if (op.kind === "wait" && op.phase === "open") waiting.push({ kind: "signal", names: op.names });
    // A step that has paused the run waits to be resumed, so it is listed only while the run is paused.
    else if (op.kind === "step" && op.phase === "awaiting_attempt" && (op.pauseCause === null || state.paused !== null))
      waiting.push({ kind: op.isScheduled ? "step" : "retry", step: name, attempt: op.attempt + 1 });
    else if (op.kind === "child" && op.phase === "open")
      waiting.push({ kind: "child", name, runId: op.runId, workflow: op.workflow });
    else if (op.kind === "map" && op.phase === "open") {
      waiting.push({ kind: "map", name, workflow: op.workflow, settled: op.endedCount, count: op.count });
    }
  }
  const dispatchedSteps = [...state.ops.values()].filter(isDispatched);
  const jobs = [...new Set(dispatchedSteps.map((op) => op.job as string))];
  if (dispatchedSteps.length > 0) waiting.push({ kind: "jobs", open: dispatchedSteps.length, jobs });
  return waiting;
}

function isBeingCompensated({ undoableSteps, cancelRequest, ops }: RunState): boolean {
  if (undoableSteps.length === 0) return false;
  return cancelRequest !== null || undoableSteps.some((step) => ops.has(compensationKeyOf(step)));
}

/** Whether the call is a compensation, a call of a compensation's body, or `onFailure`. */
function isCompensationCall(key: string): boolean {
  const step = outerStep(key);
  return isCompensation(step) || step === onFailureStep;
}

/** The step of a chain that has started or is scheduled, with its attempt; null when there is none. */
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
  /** How long the step waits after the step before it has ended. */
  readonly waitMs?: number;
}

/** A step that is not in the log yet. */
export interface NextStep {
  readonly name: string;
  readonly attempt: number;
  /** When the step is due; null when that is not known. */
  readonly dueAt: number | null;
}

/**
 * The next step of a chain while no step is in progress or scheduled: the step after the one that ended last, or else the
 * step that the run was moved to, or else the first step.
 *
 * @param startsAt the start time of a run that has not started
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
  const lastEndedStep = [...state.ops].findLast(isEndedStep)?.[0];
  const step =
    chain[
      lastEndedStep === undefined ? Math.max(0, chainIndexOf(state.movedToStep ?? "")) : chainIndexOf(lastEndedStep) + 1
    ];
  if (step === undefined) return null;
  const previousEndAt =
    lastEndedStep === undefined
      ? state.startedAt
      : state.answeredCalls.findLast(({ key }) => key === lastEndedStep)?.at;
  const baseAt = previousEndAt ?? startsAt;
  const attempt = (state.attemptsBeforeRewind?.get(step.name) ?? 0) + 1;
  return { name: step.name, attempt, dueAt: baseAt === null ? null : baseAt + (step.waitMs ?? 0) };
}

/**
 * The earliest instant at which the run has something to do without a message; null when only a message can wake the run.
 *
 * @param isAwaited returns whether the code still waits for the call. Calls that the code no longer awaits are ignored,
 * because they would wake the run again and again.
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
