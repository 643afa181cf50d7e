/** Folds the events of steps and nodes. */
import { dataOf, type StoredEvent } from "./event.js";
import { callKeyOf, type EventReducers, forgetCalls, recordAnswer } from "./fold-event.js";
import { hasEnded, type RunState, type StepOp } from "./state.js";
import { readStepFacts } from "./step-completed.js";
import { scopeOf, scopeSeparator } from "./step-key.js";

export const stepReducers: EventReducers<"step" | "node"> = {
  "step.scheduled": (state, event) => {
    // The attempt in the event has not started yet, so it must not become the step's latest attempt.
    const op = getOrCreateStep(state, { ...event, attempt: null });
    if (hasEnded(op)) return;
    scheduleAttempt(op, event.at + dataOf(event, "step.scheduled").waitMs);
    op.isScheduled = true;
  },
  "step.started": (state, event) => {
    const op = getOrCreateStep(state, event);
    if (hasEnded(op)) return;
    const { timeoutMs } = dataOf(event, "step.started");
    op.phase = "started";
    op.isAbandoned = false;
    op.deadlineAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    op.dueAt = null;
  },
  "step.completed": (state, event) => endStep(state, event, "completed"),
  "step.skipped": (state, event) => endStep(state, event, "skipped"),
  "step.canceled": (state, event) => endStep(state, event, "skipped"),
  "step.failed": (state, event) => {
    const { retryMs, transient, jobRunEnded, cursorMoved } = dataOf(event, "step.failed");
    const op = getOrCreateStep(state, event);
    if (hasEnded(op)) return;
    if (cursorMoved === true)
      op.countedFailures = op.totalFailures = op.consecutiveFailures = op.consecutiveTransientFailures = 0;
    op.totalFailures += 1;
    if (jobRunEnded === true) op.discardedJobRuns += 1;
    if (transient === true) op.consecutiveTransientFailures += 1;
    else {
      op.consecutiveTransientFailures = 0;
      op.countedFailures += 1;
      op.consecutiveFailures += 1;
    }
    if (retryMs === undefined) return endStep(state, event, "failed");
    scheduleAttempt(op, event.at + retryMs);
  },
  "step.reattempted": (state, event) => {
    const { waitMs, rewind, cursorUnmoved } = dataOf(event, "step.reattempted");
    const op = getOrCreateStep(state, event);
    if (hasEnded(op)) return;
    op.consecutiveFailures = 0;
    op.consecutiveTransientFailures = 0;
    op.continuationsWithoutProgress = cursorUnmoved === true ? op.continuationsWithoutProgress + 1 : 0;
    scheduleAttempt(op, event.at + waitMs);
    if (rewind !== true) return;
    op.isRewound = true;
    forgetCalls(state, scopeOf(callKeyOf(event)));
  },
  "node.dispatched": (state, event) => {
    const op = getOrCreateStep(state, event);
    if (hasEnded(op)) return;
    op.phase = "started";
    op.isAbandoned = false;
    op.dueAt = null;
    op.job = dataOf(event, "node.dispatched").job;
  },
  "node.reopened": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    // If two operators reopen the node at the same time, its next attempt may have started before the second event.
    if (op?.kind !== "step" || op.phase === "completed" || op.phase === "started") return;
    // The op is a new object, so that `AnsweredCall.op` distinguishes the former result from the next result.
    const reopenedOp: StepOp = {
      ...op,
      data: null,
      consecutiveFailures: 0,
      consecutiveTransientFailures: 0,
      countedFailures: 0,
    };
    state.ops.set(callKeyOf(event), reopenedOp);
    scheduleAttempt(reopenedOp, event.at);
    state.wakeVersion += 1;
  },
};

/** Sets the step to await another attempt that is due at `dueAt`. */
export function scheduleAttempt(op: StepOp, dueAt: number): void {
  op.phase = "awaiting_attempt";
  op.dueAt = dueAt;
  op.isScheduled = false;
  op.pauseCause = null;
  op.isRewound = false;
  op.job = null;
}

function getOrCreateStep(state: RunState, event: StoredEvent): StepOp {
  const key = callKeyOf(event);
  let op = state.ops.get(key);
  if (op?.kind !== "step") {
    op = {
      kind: "step",
      attempt: state.attemptsBeforeRewind?.get(key) ?? 0,
      countedFailures: 0,
      totalFailures: 0,
      consecutiveTransientFailures: 0,
      consecutiveFailures: 0,
      discardedJobRuns: 0,
      continuationsWithoutProgress: 0,
      isScheduled: false,
      pauseCause: null,
      isRewound: false,
      isAbandoned: false,
      deadlineAt: null,
      phase: "started",
      dueAt: null,
      job: null,
      ancestryHash: null,
      data: null,
    };
    state.ops.set(key, op);
  }
  op.attempt = event.attempt ?? op.attempt;
  return op;
}

function endStep(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "skipped"): void {
  const op = getOrCreateStep(state, event);
  if (hasEnded(op)) return;
  op.phase = phase;
  op.dueAt = null;
  op.pauseCause = null;
  op.job = null;
  op.data = event.data;
  state.resumeSignals?.delete(callKeyOf(event));
  if (phase === "completed") {
    const { undo, hash } = readStepFacts(event.data);
    if (state.stepStructure !== null) op.ancestryHash = hash ?? null;
    if (undo === true) state.undoableSteps.push(callKeyOf(event));
  }
  if (state.stepStructure !== null) withdrawBodyWaits(state, callKeyOf(event));
  recordAnswer(state, event);
}

/**
 * Withdraws the open timers and waits of an ended step's body, because such a wait would consume signals that other calls
 * wait for.
 */
function withdrawBodyWaits(state: RunState, step: string): void {
  if (state.bodyWaits === null || step.includes(scopeSeparator)) return;
  const scope = scopeOf(step);
  for (const key of state.bodyWaits) {
    if (!key.startsWith(scope)) continue;
    const op = state.ops.get(key);
    if ((op?.kind === "timer" || op?.kind === "wait") && op.phase === "open") op.phase = "withdrawn";
    state.bodyWaits.delete(key);
  }
}
