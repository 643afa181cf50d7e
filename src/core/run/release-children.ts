/** Limits how many children of a map run at the same time. Children are released in the order of their indexes. */
import type { MapOp } from "./state.js";

interface MapProgress extends Pick<MapOp, "releasedCount" | "endedCount" | "endedBeforeRelease" | "concurrency"> {
  readonly endedIndexes: Pick<ReadonlySet<number>, "has">;
}

/** The new `releasedCount`, at most `upTo`, that the concurrency of the map allows. Ended children occupy no slot. */
export function nextReleasedCount(op: MapProgress, upTo: number): number {
  const runningCount = op.releasedCount - (op.endedCount - op.endedBeforeRelease);
  let freeSlots = op.concurrency - runningCount;
  let releasedCount = op.releasedCount;
  while (releasedCount < upTo) {
    if (!op.endedIndexes.has(releasedCount)) {
      if (freeSlots <= 0) break;
      freeSlots -= 1;
    }
    releasedCount += 1;
  }
  return releasedCount;
}

/**
 * Releases the first `upTo` children. A number that is not higher than before is ignored, because a worker may raise the
 * count before the event that records the release is folded.
 */
export function releaseUpTo(op: MapOp, upTo: number): void {
  if (upTo <= op.releasedCount) return;
  for (let index = op.releasedCount; index < upTo; index += 1)
    if (op.endedIndexes.has(index)) op.endedBeforeRelease -= 1;
  op.releasedCount = upTo;
}

export function recordEndedMapChild(op: MapOp, index: number): void {
  if (op.endedIndexes.has(index)) return;
  op.endedIndexes.add(index);
  if (index >= op.releasedCount) op.endedBeforeRelease += 1;
}
