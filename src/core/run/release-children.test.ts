import { expect, test } from "vitest";
import { endMapChild, releasable, release } from "./release-children.js";
import type { MapOp } from "./state.js";

function map(count: number, concurrency: number): MapOp {
  const fixed = { kind: "map", phase: "open", workflow: "w", count, concurrency, tolerate: 0, spawned: count } as const;
  return { ...fixed, released: 0, settled: 0, failed: [], ended: new Set(), ahead: 0, adopted: null };
}

function end(op: MapOp, ...indexes: number[]): void {
  for (const index of indexes) endMapChild(op, index);
  op.settled = op.ended.size;
}

test("as many may run as the concurrency says, and one more for each that has ended", () => {
  const op = map(5, 2);
  expect(releasable(op, 5)).toBe(2);
  release(op, 2);
  expect(releasable(op, 5)).toBe(2);
  end(op, 1);
  expect(releasable(op, 5)).toBe(3);
  expect(releasable(op, 2)).toBe(2);
});

test("children that ended before they were released make no room, and take none", () => {
  const op = map(8, 2);
  end(op, 0, 3, 4, 5, 7);
  release(op, releasable(op, 8));
  // 1 and 2 run; 3, 4 and 5 have ended, so that the released ones reach up to 6.
  expect(op.released).toBe(6);
  end(op, 2);
  release(op, releasable(op, 8));
  expect(op.released).toBe(8);
  expect(op.ahead).toBe(0);
});

test("what was released stays released", () => {
  const op = map(4, 4);
  release(op, 3);
  release(op, 2);
  expect(op.released).toBe(3);
});
