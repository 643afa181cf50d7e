/** Folds the events of children and maps. */
import { dataOf, type StoredEvent } from "./event.js";
import { callKeyOf, type EventReducers, recordAnswer } from "./fold-event.js";
import { expandRanges } from "./ranges.js";
import { recordEndedMapChild, releaseUpTo } from "./release-children.js";
import type { MapOp, RunState } from "./state.js";

export const childReducers: EventReducers<"child" | "map"> = {
  "child.started": (state, event) => {
    const { runId, workflow } = dataOf(event, "child.started");
    state.ops.set(callKeyOf(event), { kind: "child", phase: "open", runId, workflow, data: null });
  },
  "child.completed": (state, event) => endChild(state, event, "completed"),
  "child.failed": (state, event) => endChild(state, event, "failed"),
  "child.canceled": (state, event) => endChild(state, event, "canceled"),
  "map.started": (state, event) => {
    const { from = null, failed = [], spawned, released, ...fixedFields } = dataOf(event, "map.started");
    const op: MapOp = {
      kind: "map",
      phase: "open",
      ...fixedFields,
      spawnedCount: spawned,
      releasedCount: released,
      endedCount: 0,
      failedIndexes: [...expandRanges(failed)],
      endedIndexes: new Set<number>(),
      endedBeforeRelease: 0,
      adopted: from,
    };
    state.ops.set(callKeyOf(event), op);
    for (const { indexes } of from ?? []) for (const index of expandRanges(indexes)) recordEndedMapChild(op, index);
    op.endedCount = op.endedIndexes.size;
    endMapIfDone(state, event, op);
  },
  "map.spawned": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind !== "map") return;
    const { spawned, released } = dataOf(event, "map.spawned");
    op.spawnedCount = spawned;
    releaseUpTo(op, released);
  },
  "map.released": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind === "map") releaseUpTo(op, dataOf(event, "map.released").released);
  },
  "map.settled": (state, event) => {
    const op = state.ops.get(callKeyOf(event));
    if (op?.kind !== "map") return;
    const { completed, failed } = dataOf(event, "map.settled");
    for (const index of expandRanges(completed)) recordEndedMapChild(op, index);
    for (const index of expandRanges(failed)) {
      if (op.endedIndexes.has(index)) continue;
      recordEndedMapChild(op, index);
      // After the map has failed, its other children are canceled. Their end is not a cause of the map's failure.
      if (op.phase === "open") op.failedIndexes.push(index);
    }
    op.endedCount = op.endedIndexes.size;
    endMapIfDone(state, event, op);
  },
};

function endChild(state: RunState, event: StoredEvent, phase: "completed" | "failed" | "canceled"): void {
  const op = state.ops.get(callKeyOf(event));
  if (op?.kind !== "child" || op.phase !== "open") return;
  op.phase = phase;
  op.data = event.data;
  recordAnswer(state, event);
}

function endMapIfDone(state: RunState, event: StoredEvent, op: MapOp): void {
  if (op.phase !== "open") return;
  if (op.failedIndexes.length > op.tolerate) op.phase = "failed";
  else if (op.endedCount === op.count) op.phase = "settled";
  else return;
  recordAnswer(state, event);
}
