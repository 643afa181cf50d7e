import { expect, test } from "vitest";
import type { Runtime } from "../../runtime/runtime.js";
import type { FreedSlots, Limits } from "../../store/contract/limits.js";
import { LaneWaker } from "./lane-waker.js";

/** A waker whose timers fire when the test says so, and what it has told the store. */
function setUp() {
  const timers: (() => void)[] = [];
  const runtime = {
    setTimeout: (callback: () => void) => {
      timers.push(callback);
      return { unref: () => {} };
    },
    clearTimeout: () => {},
  } as unknown as Runtime;
  const woken: (readonly FreedSlots[])[] = [];
  const limits = { wake: async (freed: readonly FreedSlots[]) => void woken.push(freed) } as unknown as Limits;
  const log = { warn: () => {} } as never;
  const waker = new LaneWaker(limits, log, runtime);
  return { waker, woken, fireTimers: () => timers.splice(0).forEach((fire) => void fire()) };
}

const lanes = (count: number): FreedSlots[] => Array.from({ length: count }, (_, n) => ({ lane: `l${n}`, count: 1 }));

test("an admission gets no more freed lanes than it asks for, those first that were freed first", () => {
  const { waker } = setUp();
  waker.onFreed(() => true);
  waker.free(lanes(5));
  expect(waker.takeFreed(2).map(({ lane }) => lane)).toEqual(["l0", "l1"]);
  expect(waker.hasFreed).toBe(true);
  expect(waker.takeFreed(10).map(({ lane }) => lane)).toEqual(["l2", "l3", "l4"]);
  expect(waker.hasFreed).toBe(false);
});

test("without room for further runs, what is free is kept for the next admission", async () => {
  const { waker, woken, fireTimers } = setUp();
  waker.onFreed(() => false);
  waker.free(lanes(1));
  await waker.settled();
  expect(woken).toEqual([]);
  expect(waker.takeFreed(1)).toEqual(lanes(1));
  fireTimers();
  await waker.settled();
  expect(woken).toEqual([]);
});

test("what no admission has taken in the meantime is announced to all workers", async () => {
  const { waker, woken, fireTimers } = setUp();
  waker.onFreed(() => false);
  waker.free(lanes(2));
  fireTimers();
  await waker.settled();
  expect(woken).toEqual([lanes(2)]);
});

test("a worker that claims nothing announces what is free at once", async () => {
  const { waker, woken } = setUp();
  waker.free(lanes(1));
  await waker.settled();
  expect(woken).toEqual([lanes(1)]);
});
