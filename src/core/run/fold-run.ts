/** Folds the events of a run as a whole. */
import { dataOf } from "./event.js";
import { callKeyOf, type EventReducer, type EventReducers, forgetCalls, recordAnswer } from "./fold-event.js";
import { scheduleAttempt } from "./fold-step.js";
import { consumeSignal } from "./fold-wait.js";
import { stepsWithReplacedJob } from "./job-runs.js";
import { isLostStep } from "./lost-step.js";
import type { Ending, RunState } from "./state.js";
import { scopeSeparator } from "./step-key.js";

export const runReducers: EventReducers<"run" | "input" | "shape" | "dag" | "branch" | "patch" | "call"> = {
  "run.started": (state, event) => {
    const data = dataOf(event, "run.started");
    const { startedAt, timeoutMs, steps, shape } = data;
    state.startedAt = startedAt ?? event.at;
    state.stepStructure = steps ?? null;
    state.stepSignature = shape ?? null;
    if (timeoutMs !== undefined) state.deadlineAt = event.at + timeoutMs;
    if (data.checked === true) state.checkedInput = toCheckedInput(data);
  },
  "input.checked": (state, event) => {
    state.checkedInput = toCheckedInput(dataOf(event, "input.checked"));
  },
  "run.forked": (state, event) => {
    const { from, root: rootRunId, keyRunIds = {}, redo, children = {}, hashes = {} } = dataOf(event, "run.forked");
    state.forkedFrom = from;
    state.lineage = {
      rootRunId,
      keyRunIds: new Map(Object.entries(keyRunIds)),
      childrenOrigins: new Map(Object.entries(children)),
      undoneHashes: new Map(Object.entries(hashes)),
    };
    state.callsToRedo = new Set(redo);
  },
  "shape.changed": (state, event) => {
    state.stepSignature = dataOf(event, "shape.changed").shape;
  },
  "run.recovered": (state, event) => {
    const { deliveries } = dataOf(event, "run.recovered");
    // The run was parked since the last one, and its deliveries are counted anew.
    if (deliveries <= state.delivery) state.lastProductiveDelivery = 1;
    state.delivery = deliveries;
    state.recoveredSeq = event.seq;
    for (const op of state.ops.values()) {
      // A dispatched job is executed by a run of its own, which the death of this run's worker does not affect.
      if (op.kind === "step" && op.phase === "started" && op.job === null) op.isAbandoned = true;
    }
    state.wakeVersion += 1;
  },
  "run.blocked": (state, event) => {
    const { worker: workerName, session, by, suspected } = dataOf(event, "run.blocked");
    if (by !== undefined) return;
    state.blockedWorkers ??= new Map();
    state.blockedWorkers.set(suspected === true ? null : (event.node ?? ""), { workerName, session });
  },
  "run.paused": (state, event) => {
    const { reason, error, resumeOn, recheckMs, continuesWhenResumed } = dataOf(event, "run.paused");
    if (continuesWhenResumed === true) state.ops.set(callKeyOf(event), { kind: "pause" });
    const stuckOp = event.node === null ? undefined : state.ops.get(event.node);
    if (stuckOp?.kind === "step" && stuckOp.phase === "awaiting_attempt")
      stuckOp.pauseCause = { reason, error: error ?? null };
    state.resumeSignals?.delete(event.node ?? "");
    state.paused = {
      reason,
      at: event.at,
      error: error ?? null,
      node: event.node,
      resumeOn: resumeOn ?? null,
      recheckAt: recheckMs === undefined ? null : event.at + recheckMs,
    };
  },
  "run.resumed": (state, event) => {
    const stuckOp = state.paused?.node == null ? undefined : state.ops.get(state.paused.node);
    if (stuckOp?.kind === "step" && isLostStep(state, state.paused?.node as string, stuckOp)) {
      // The step had started when its worker died, and `onCrash: "pause"` has paused the run. Now the step may run again.
      stuckOp.phase = "awaiting_attempt";
      stuckOp.dueAt = event.at;
    }
    const { signal, by, onlyStep, accept, renamed } = dataOf(event, "run.resumed");
    for (const name of accept ?? []) (state.acceptedNames ??= new Set()).add(name);
    for (const [logName, codeName] of Object.entries(renamed ?? {}))
      (state.logNameByCodeName ??= new Map()).set(codeName, logName);
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || (onlyStep !== undefined && onlyStep !== key)) continue;
      op.pauseCause = null;
      if (by === "operator") op.consecutiveFailures = op.consecutiveTransientFailures = 0;
    }
    if (by === "operator") {
      state.consecutiveTransientFailures = 0;
      state.blockedWorkers = null;
    }
    if (signal !== undefined)
      (state.resumeSignals ??= new Map()).set(state.paused?.node ?? "", consumeSignal(state, signal));
    state.paused = null;
    state.wakeVersion += 1;
  },
  "run.cancel_requested": (state, event) => {
    const { reason, force, code } = dataOf(event, "run.cancel_requested");
    state.cancelRequest = {
      reason: reason ?? state.cancelRequest?.reason ?? null,
      force: force === true,
      code: code ?? null,
    };
    state.wakeVersion += 1;
  },
  "run.start_queued": (state, event) => {
    (state.queuedStarts ??= []).push(dataOf(event, "run.start_queued").run);
  },
  "run.start_replaced": (state, event) => {
    state.replacedStartBy = dataOf(event, "run.start_replaced").startBy ?? null;
  },
  "run.expired": (state, event) => {
    state.timeoutFailure = dataOf(event, "run.expired").error;
    // The time limit applies only once, so that compensations and `onFailure` can take as long as they need.
    state.deadlineAt = null;
    state.wakeVersion += 1;
  },
  "run.reattempted": (state, event) => {
    const { waitMs, rewind, transient } = dataOf(event, "run.reattempted");
    state.reattemptAt = event.at + waitMs;
    state.consecutiveTransientFailures = transient === true ? state.consecutiveTransientFailures + 1 : 0;
    if (rewind) forgetCalls(state);
  },
  "run.moved": (state, event) => {
    forgetCalls(state);
    state.movedToStep = dataOf(event, "run.moved").to;
    state.wakeVersion += 1;
  },
  "run.woken": (state) => {
    state.reattemptAt = null;
    state.wakeVersion += 1;
  },
  "run.became_due": (state) => {
    state.becameDueWhilePaused = true;
  },
  "run.completed": endRunAs("completed"),
  "run.failed": endRunAs("failed"),
  "run.canceled": endRunAs("canceled"),
  "dag.imported": (state, event) => {
    const { dag } = dataOf(event, "dag.imported");
    for (const key of stepsWithReplacedJob(state, dag)) {
      const op = state.ops.get(key);
      if (op?.kind !== "step") continue;
      if (op.job === null) op.discardedJobRuns += 1;
      else scheduleAttempt(op, event.at);
    }
    state.importedDag = dag;
    state.wakeVersion += 1;
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || key.includes(scopeSeparator) || Object.hasOwn(dag.nodes, key)) continue;
      // The run no longer waits for a removed node. If a later import adds the node again, its attempts continue to count
      // from here.
      (state.attemptsBeforeRewind ??= new Map()).set(key, op.attempt);
      state.ops.delete(key);
    }
  },
  "branch.chosen": (state, event) => {
    state.ops.set(callKeyOf(event), { kind: "branch", choice: dataOf(event, "branch.chosen").choice });
    recordAnswer(state, event);
  },
  "call.added": (state, event) => {
    (state.addedCalls ??= new Set()).add(callKeyOf(event));
  },
  "patch.applied": (state, event) => {
    state.ops.set(callKeyOf(event), { kind: "patch" });
  },
};

/**
 * The input was transformed if the key exists, even with the value `undefined`, because a schema may return `undefined`.
 */
function toCheckedInput(data: { readonly input?: unknown }): NonNullable<RunState["checkedInput"]> {
  return { isTransformed: "input" in data, value: data.input };
}

function endRunAs(status: Ending["status"]): EventReducer {
  return (state, event) => {
    // A run has one ending; a second terminal event is ignored.
    state.ending ??= { status, at: event.at, data: event.data };
    state.paused = null;
  };
}
