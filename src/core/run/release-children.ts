/** Which children of a map may run: the first so many, of whom no more than the concurrency have not ended. */
import type { MapOp } from "./state.js";

interface Counted extends Pick<MapOp, "released" | "settled" | "ahead" | "concurrency"> {
  readonly ended: Pick<ReadonlySet<number>, "has">;
}

/** How many of the first `upTo` children may run now. Children that have ended already take no place. */
export function releasable(op: Counted, upTo: number): number {
  const running = op.released - (op.settled - op.ahead);
  let room = op.concurrency - running;
  let released = op.released;
  while (released < upTo) {
    if (!op.ended.has(released)) {
      if (room <= 0) break;
      room -= 1;
    }
    released += 1;
  }
  return released;
}

/** Never fewer than before: what was noted before its event is written must stand when that event is folded. */
export function release(op: MapOp, upTo: number): void {
  if (upTo <= op.released) return;
  for (let index = op.released; index < upTo; index += 1) if (op.ended.has(index)) op.ahead -= 1;
  op.released = upTo;
}

export function endMapChild(op: MapOp, index: number): void {
  if (op.ended.has(index)) return;
  op.ended.add(index);
  if (index >= op.released) op.ahead += 1;
}
