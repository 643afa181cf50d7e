/** What children and maps of children do to the state of the run that started them. */
import { dataOf, type StoredEvent } from "./event.js";
import { answer, type Folders, keyOf } from "./fold-event.js";
import { indexes } from "./ranges.js";
import { endMapChild, release } from "./release-children.js";
import type { MapOp, RunState } from "./state.js";

export const childFolders: Folders<"child" | "map"> = {
  "child.started": (state, event) => {
    const { runId, workflow } = dataOf(event, "child.started");
    state.ops.set(keyOf(event), { kind: "child", phase: "open", runId, workflow, data: null });
  },
  "child.completed": (state, event) => endChild(state, event, "completed"),
  "child.failed": (state, event) => endChild(state, event, "failed"),
  "child.canceled": (state, event) => endChild(state, event, "canceled"),
  "map.started": (state, event) => {
    const { from = null, failed = [], ...fixed } = dataOf(event, "map.started");
    const counted = { settled: 0, failed: [...indexes(failed)], ended: new Set<number>(), ahead: 0 };
    const op: MapOp = { kind: "map", phase: "open", ...fixed, ...counted, adopted: from };
    state.ops.set(keyOf(event), op);
    for (const one of from ?? []) for (const index of indexes(one.indexes)) endMapChild(op, index);
    op.settled = op.ended.size;
    settleMap(state, event, op);
  },
  "map.spawned": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind !== "map") return;
    const { spawned, released } = dataOf(event, "map.spawned");
    op.spawned = spawned;
    release(op, released);
  },
  "map.released": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind === "map") release(op, dataOf(event, "map.released").released);
  },
  "map.settled": (state, event) => {
    const op = state.ops.get(keyOf(event));
    if (op?.kind !== "map") return;
    const { completed, failed } = dataOf(event, "map.settled");
    for (const index of indexes(completed)) endMapChild(op, index);
    for (const index of indexes(failed)) {
      if (op.ended.has(index)) continue;
      endMapChild(op, index);
      // Those that are canceled because it has failed are not why it did.
      if (op.phase === "open") op.failed.push(index);
    }
    op.settled = op.ended.size;
    settleMap(state, event, op);
  },
};

function endChild(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "canceled"): void {
  const op = state.ops.get(keyOf(event));
  if (op?.kind !== "child" || op.phase !== "open") return;
  op.phase = phase;
  op.data = event.data;
  answer(state, event);
}

function settleMap(state: RunState, event: StoredEvent, op: MapOp): void {
  if (op.phase !== "open") return;
  if (op.failed.length > op.tolerate) op.phase = "failed";
  else if (op.settled === op.count) op.phase = "settled";
  else return;
  answer(state, event);
}
