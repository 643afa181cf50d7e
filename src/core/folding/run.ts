/** What events of a run as a whole do to its state. */
import { dataOf } from "../event.js";
import { scopeMark } from "../scope.js";
import type { Ending } from "../state.js";
import { answer, type Folder, type Folders, forget, keyOf } from "./folder.js";
import { takeSignal } from "./wait.js";

export const runFolders: Folders<"run" | "shape" | "dag" | "branch" | "patch"> = {
  "run.started": (state, event) => {
    const { began, timeoutMs, steps, shape } = dataOf(event, "run.started");
    state.startedAt = began ?? event.at;
    state.steps = steps ?? null;
    state.shape = shape ?? null;
    if (timeoutMs !== undefined) state.deadlineAt = event.at + timeoutMs;
  },
  "run.forked": (state, event) => {
    state.forkedFrom = dataOf(event, "run.forked").from;
  },
  "shape.changed": (state, event) => {
    state.shape = dataOf(event, "shape.changed").shape;
  },
  "run.recovered": (state, event) => {
    state.delivery = dataOf(event, "run.recovered").deliveries;
    for (const op of state.ops.values()) {
      // What was handed to others goes on without the run's own worker.
      if (op.kind === "step" && op.phase === "started" && op.job === null) op.abandoned = true;
    }
    state.news += 1;
  },
  "run.blocked": (state, event) => {
    const { worker, session, by, suspected } = dataOf(event, "run.blocked");
    if (by !== undefined) return;
    state.blocked ??= new Map();
    state.blocked.set(suspected === true ? null : (event.node ?? ""), { worker, session });
  },
  "run.paused": (state, event) => {
    const { reason, error, resumeOn, recheckMs, passable } = dataOf(event, "run.paused");
    if (passable === true) state.ops.set(keyOf(event), { kind: "pause" });
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
    const stuck = state.paused?.node == null ? undefined : state.ops.get(state.paused.node);
    if (stuck?.kind === "step" && stuck.phase === "started") {
      // It had begun when its worker died, and was held because of `onCrash: "pause"`: now it may run again.
      stuck.phase = "again";
      stuck.dueAt = event.at;
    }
    const { signal, by } = dataOf(event, "run.resumed");
    if (by === "operator") for (const op of state.ops.values()) if (op.kind === "step") op.streak = 0;
    if (by === "operator") state.blocked = null;
    if (signal !== undefined) takeSignal(state, signal);
    state.paused = null;
    state.news += 1;
  },
  "run.cancel_requested": (state, event) => {
    state.cancel = { reason: dataOf(event, "run.cancel_requested").reason ?? null };
    state.news += 1;
  },
  "run.reattempted": (state, event) => {
    const { waitMs, rewind } = dataOf(event, "run.reattempted");
    state.reattemptAt = event.at + waitMs;
    if (rewind) forget(state);
  },
  "run.moved": (state, event) => {
    forget(state);
    state.position = dataOf(event, "run.moved").to;
    state.news += 1;
  },
  "run.woken": (state) => {
    state.reattemptAt = null;
    state.news += 1;
  },
  "run.completed": end("completed"),
  "run.failed": end("failed"),
  "run.canceled": end("canceled"),
  "dag.imported": (state, event) => {
    const { dag } = dataOf(event, "dag.imported");
    state.dag = dag;
    state.news += 1;
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || key.includes(scopeMark) || Object.hasOwn(dag.nodes, key)) continue;
      // Nobody waits for it any more. Should it come back, its attempts go on counting.
      (state.rewound ??= new Map()).set(key, op.attempt);
      state.ops.delete(key);
    }
  },
  "branch.chosen": (state, event) => {
    state.ops.set(keyOf(event), { kind: "branch", choice: dataOf(event, "branch.chosen").choice });
    answer(state, event);
  },
  "patch.applied": (state, event) => {
    state.ops.set(keyOf(event), { kind: "patch" });
  },
};

function end(status: Ending["status"]): Folder {
  return (state, event) => {
    // One terminal outcome per run: whatever came second is not an ending.
    state.ending ??= { status, at: event.at, data: event.data };
    state.paused = null;
  };
}
