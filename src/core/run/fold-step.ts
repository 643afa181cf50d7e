/** What events of steps and nodes do to the state of their run. */
import { dataOf, type StoredEvent } from "./event.js";
import { answer, type Folders, forget, keyOf } from "./fold-event.js";
import { hasEnded, type RunState, type StepOp } from "./state.js";
import { readStepFacts } from "./step-completed.js";
import { scopeMark, scopeOf } from "./step-key.js";

export const stepFolders: Folders<"step" | "node"> = {
  "step.scheduled": (state, event) => {
    // The attempt that it names is yet to come.
    const op = stepOf(state, { ...event, attempt: null });
    if (hasEnded(op)) return;
    goAgain(op, event.at + dataOf(event, "step.scheduled").waitMs);
    op.planned = true;
  },
  "step.started": (state, event) => {
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    const { timeoutMs } = dataOf(event, "step.started");
    op.phase = "started";
    op.abandoned = false;
    op.deadlineAt = timeoutMs === undefined ? null : event.at + timeoutMs;
    op.dueAt = null;
  },
  "step.completed": (state, event) => endStep(state, event, "completed"),
  "step.skipped": (state, event) => endStep(state, event, "skipped"),
  "step.canceled": (state, event) => endStep(state, event, "skipped"),
  "step.failed": (state, event) => {
    const { retryMs, transient, spent, moved } = dataOf(event, "step.failed");
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    if (moved === true) op.failures = op.setbacks = op.streak = op.postponed = 0;
    op.setbacks += 1;
    if (spent === true) op.spent += 1;
    if (transient === true) op.postponed += 1;
    else {
      op.postponed = 0;
      op.failures += 1;
      op.streak += 1;
    }
    if (retryMs === undefined) return endStep(state, event, "failed");
    goAgain(op, event.at + retryMs);
  },
  "step.reattempted": (state, event) => {
    const { waitMs, rewind, still } = dataOf(event, "step.reattempted");
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    op.streak = 0;
    op.postponed = 0;
    op.standstill = still === true ? op.standstill + 1 : 0;
    goAgain(op, event.at + waitMs);
    if (rewind !== true) return;
    op.rewound = true;
    forget(state, scopeOf(keyOf(event)));
  },
  "node.dispatched": (state, event) => {
    const op = stepOf(state, event);
    if (hasEnded(op)) return;
    op.phase = "started";
    op.abandoned = false;
    op.dueAt = null;
    op.job = dataOf(event, "node.dispatched").job;
  },
  "node.reopened": (state, event) => {
    const op = state.ops.get(keyOf(event));
    // Two may have asked for it at the same moment.
    if (op?.kind !== "step" || op.phase === "completed" || op.phase === "started") return;
    // A new one: the answer that the code once got was to the old one.
    const reopened = { ...op, data: null, streak: 0, postponed: 0, failures: 0 };
    state.ops.set(keyOf(event), reopened);
    goAgain(reopened, event.at);
    state.news += 1;
  },
};

/** It has not ended: another attempt is due at this instant. */
export function goAgain(op: StepOp, dueAt: number): void {
  op.phase = "again";
  op.dueAt = dueAt;
  op.planned = false;
  op.held = null;
  op.rewound = false;
  op.job = null;
}

function stepOf(state: RunState, event: StoredEvent): StepOp {
  const key = keyOf(event);
  let op = state.ops.get(key);
  if (op?.kind !== "step") {
    op = {
      kind: "step",
      attempt: state.rewound?.get(key) ?? 0,
      failures: 0,
      setbacks: 0,
      postponed: 0,
      streak: 0,
      spent: 0,
      standstill: 0,
      planned: false,
      held: null,
      rewound: false,
      abandoned: false,
      deadlineAt: null,
      phase: "started",
      dueAt: null,
      job: null,
      hash: null,
      data: null,
    };
    state.ops.set(key, op);
  }
  op.attempt = event.attempt ?? op.attempt;
  return op;
}

function endStep(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "skipped"): void {
  const op = stepOf(state, event);
  if (hasEnded(op)) return;
  op.phase = phase;
  op.dueAt = null;
  op.held = null;
  op.job = null;
  op.data = event.data;
  state.resumedBy?.delete(keyOf(event));
  if (phase === "completed") {
    const { undo, hash } = readStepFacts(event.data);
    if (state.steps !== null) op.hash = hash ?? null;
    if (undo === true) state.undoable.push(keyOf(event));
  }
  if (state.steps !== null) withdrawWithin(state, keyOf(event));
  answer(state, event);
}

/** What the body of a step that is over had waited for is not waited for any more: it must not take the signals of others. */
function withdrawWithin(state: RunState, step: string): void {
  if (state.resting === null || step.includes(scopeMark)) return;
  const scope = scopeOf(step);
  for (const key of state.resting) {
    if (!key.startsWith(scope)) continue;
    const op = state.ops.get(key);
    if ((op?.kind === "timer" || op?.kind === "wait") && op.phase === "open") op.phase = "withdrawn";
    state.resting.delete(key);
  }
}
