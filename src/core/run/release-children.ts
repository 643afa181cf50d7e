/** Which children of a map may run: the first so many, of whom no more than the concurrency have not ended. */
import type { MapOp } from "./state.js";

interface MapProgress extends Pick<MapOp, "releasedCount" | "endedCount" | "endedBeforeRelease" | "concurrency"> {
  readonly endedIndexes: Pick<ReadonlySet<number>, "has">;
}

/** How many of the first `upTo` children may run now. Children that have ended already take no place. */
export function nextReleasedCount(op: MapProgress, upTo: number): number {
  const running = op.releasedCount - (op.endedCount - op.endedBeforeRelease);
  let freeSlots = op.concurrency - running;
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

/** Never fewer than before: what was noted before its event is written must stand when that event is folded. */
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
