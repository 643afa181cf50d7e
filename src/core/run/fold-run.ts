/** What events of a run as a whole do to its state. */
import { dataOf } from "./event.js";
import { answer, type Folder, type Folders, forget, keyOf } from "./fold-event.js";
import { goAgain } from "./fold-step.js";
import { takeSignal } from "./fold-wait.js";
import { stepsWithAnotherJob } from "./job-runs.js";
import type { Ending, RunState } from "./state.js";
import { scopeMark } from "./step-key.js";

export const runFolders: Folders<"run" | "input" | "shape" | "dag" | "branch" | "patch" | "call"> = {
  "run.started": (state, event) => {
    const data = dataOf(event, "run.started");
    const { began, timeoutMs, steps, shape } = data;
    state.startedAt = began ?? event.at;
    state.steps = steps ?? null;
    state.shape = shape ?? null;
    if (timeoutMs !== undefined) state.deadlineAt = event.at + timeoutMs;
    if (data.checked === true) state.input = acceptedInput(data);
  },
  "input.checked": (state, event) => {
    state.input = acceptedInput(dataOf(event, "input.checked"));
  },
  "run.forked": (state, event) => {
    const { from, root, roots = {}, redo, children = {}, hashes = {} } = dataOf(event, "run.forked");
    state.forkedFrom = from;
    state.lineage = {
      root,
      roots: new Map(Object.entries(roots)),
      children: new Map(Object.entries(children)),
      hashes: new Map(Object.entries(hashes)),
    };
    state.redo = new Set(redo);
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
    const stuck = event.node === null ? undefined : state.ops.get(event.node);
    if (stuck?.kind === "step" && stuck.phase === "again") stuck.held = { reason, error: error ?? null };
    state.resumedBy?.delete(event.node ?? "");
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
    // One that only waits for its job goes on waiting: the job may be executed at any time, and must not be run twice.
    if (stuck?.kind === "step" && stuck.phase === "started" && stuck.abandoned) {
      // It had begun when its worker died, and was held because of `onCrash: "pause"`: now it may run again.
      stuck.phase = "again";
      stuck.dueAt = event.at;
    }
    const { signal, by, only, accept, renamed } = dataOf(event, "run.resumed");
    for (const name of accept ?? []) (state.accepted ??= new Set()).add(name);
    for (const [older, name] of Object.entries(renamed ?? {})) (state.renamed ??= new Map()).set(name, older);
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || (only !== undefined && only !== key)) continue;
      op.held = null;
      if (by === "operator") op.streak = op.postponed = 0;
    }
    if (by === "operator") {
      state.postponed = 0;
      state.blocked = null;
    }
    if (signal !== undefined) (state.resumedBy ??= new Map()).set(state.paused?.node ?? "", takeSignal(state, signal));
    state.paused = null;
    state.news += 1;
  },
  "run.cancel_requested": (state, event) => {
    const { reason, force } = dataOf(event, "run.cancel_requested");
    state.cancel = { reason: reason ?? state.cancel?.reason ?? null, force: force === true };
    state.news += 1;
  },
  "run.expired": (state, event) => {
    state.expired = dataOf(event, "run.expired").error;
    // It passes once: the steps that are left have the time that they need.
    state.deadlineAt = null;
    state.news += 1;
  },
  "run.reattempted": (state, event) => {
    const { waitMs, rewind, transient } = dataOf(event, "run.reattempted");
    state.reattemptAt = event.at + waitMs;
    state.postponed = transient === true ? state.postponed + 1 : 0;
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
  "run.became_due": (state) => {
    state.becameDue = true;
  },
  "run.completed": end("completed"),
  "run.failed": end("failed"),
  "run.canceled": end("canceled"),
  "dag.imported": (state, event) => {
    const { dag } = dataOf(event, "dag.imported");
    for (const key of stepsWithAnotherJob(state, dag)) {
      const op = state.ops.get(key);
      if (op?.kind !== "step") continue;
      if (op.job === null) op.spent += 1;
      else goAgain(op, event.at);
    }
    state.dag = dag;
    state.news += 1;
    for (const [key, op] of state.ops) {
      if (op.kind !== "step" || key.includes(scopeMark) || Object.hasOwn(dag.nodes, key)) continue;
      // The run does not wait for it any more. Should it come back, its attempts go on counting.
      (state.rewound ??= new Map()).set(key, op.attempt);
      state.ops.delete(key);
    }
  },
  "branch.chosen": (state, event) => {
    state.ops.set(keyOf(event), { kind: "branch", choice: dataOf(event, "branch.chosen").choice });
    answer(state, event);
  },
  "call.added": (state, event) => {
    (state.added ??= new Set()).add(keyOf(event));
  },
  "patch.applied": (state, event) => {
    state.ops.set(keyOf(event), { kind: "patch" });
  },
};

/** `undefined` is a value like any other, so it counts whether there is one. */
function acceptedInput(data: { readonly input?: unknown }): NonNullable<RunState["input"]> {
  return { made: "input" in data, value: data.input };
}

function end(status: Ending["status"]): Folder {
  return (state, event) => {
    // One terminal outcome per run: whatever came second is not an ending.
    state.ending ??= { status, at: event.at, data: event.data };
    state.paused = null;
  };
}
