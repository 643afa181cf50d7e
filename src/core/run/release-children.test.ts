import { expect, test } from "vitest";
import { nextReleasedCount, recordEndedMapChild, releaseUpTo } from "./release-children.js";
import type { MapOp } from "./state.js";

function map(count: number, concurrency: number): MapOp {
  const fixed = {
    kind: "map",
    phase: "open",
    workflow: "w",
    count,
    concurrency,
    tolerate: 0,
    spawnedCount: count,
  } as const;
  return {
    ...fixed,
    releasedCount: 0,
    endedCount: 0,
    failedIndexes: [],
    endedIndexes: new Set(),
    endedBeforeRelease: 0,
    adopted: null,
  };
}

function end(op: MapOp, ...indexes: number[]): void {
  for (const index of indexes) recordEndedMapChild(op, index);
  op.endedCount = op.endedIndexes.size;
}

test("as many children are released as the concurrency allows, and one more for each that has ended", () => {
  const op = map(5, 2);
  expect(nextReleasedCount(op, 5)).toBe(2);
  releaseUpTo(op, 2);
  expect(nextReleasedCount(op, 5)).toBe(2);
  end(op, 1);
  expect(nextReleasedCount(op, 5)).toBe(3);
  expect(nextReleasedCount(op, 2)).toBe(2);
});

test("children that ended before they were released free no slot, and take none", () => {
  const op = map(8, 2);
  end(op, 0, 3, 4, 5, 7);
  releaseUpTo(op, nextReleasedCount(op, 8));
  // Children 1 and 2 run. Children 3, 4 and 5 have ended, so the first six children are released.
  expect(op.releasedCount).toBe(6);
  end(op, 2);
  releaseUpTo(op, nextReleasedCount(op, 8));
  expect(op.releasedCount).toBe(8);
  expect(op.endedBeforeRelease).toBe(0);
});

test("released children stay released", () => {
  const op = map(4, 4);
  releaseUpTo(op, 3);
  releaseUpTo(op, 2);
  expect(op.releasedCount).toBe(3);
});
