import { expect, test } from "vitest";
import type { Runtime } from "../../runtime/runtime.js";
import { transition } from "../../testing/store-suite/builders.js";
import type { QueuedTransition, Receipt } from "./receipt.js";
import { UncertainEnds } from "./uncertain-ends.js";

const lateCallMs = 3_000;

/** Time stands still, and timers fire when the test says so. */
function setUp() {
  let now = 0;
  const timers = new Map<object, { readonly callback: () => void; readonly at: number }>();
  const runtime = {
    monotonic: () => now,
    setTimeout: (callback: () => void, ms: number) => {
      const timer = { unref: () => timer };
      timers.set(timer, { callback, at: now + ms });
      return timer;
    },
    clearTimeout: (timer: object) => void timers.delete(timer),
  } as unknown as Runtime;
  const receipts: (Receipt | null)[] = [];
  const finish = { kind: "finish", status: "completed", output: null, error: null, startedAt: null } as never;
  const end: QueuedTransition = {
    transition: transition("run", { next: finish }),
    merged: null,
    receiver: (receipt) => receipts.push(receipt),
    laterReceivers: null,
  };
  const advance = (ms: number) => {
    now += ms;
    for (const [timer, { callback, at }] of [...timers]) if (at <= now && timers.delete(timer)) callback();
  };
  return { ends: new UncertainEnds(runtime, lateCallMs), end, receipts, timers, advance };
}

const unread = { kind: "unread" };

test("a run learns at once that messages keep it from ending, if no connection failed", () => {
  const { ends, end, receipts } = setUp();
  expect(ends.refuse([end], "run")).toEqual([]);
  expect(receipts).toEqual([unread]);
});

test("a run whose first try to end may still be executed goes on when that is not possible any more", () => {
  const { ends, end, receipts, advance } = setUp();
  ends.note([end]);
  advance(1_000);
  ends.refuse([end], "run");
  advance(lateCallMs - 1_001);
  expect(receipts).toEqual([]);
  advance(1);
  expect(receipts).toEqual([unread]);
});

test("when the worker stops, the run is given up, and no timer is left", () => {
  const { ends, end, receipts, timers } = setUp();
  ends.note([end]);
  ends.refuse([end], "run");
  ends.close();
  expect([receipts, timers.size]).toEqual([[null], 0]);
  // A commit was under way.
  ends.refuse([end], "run");
  expect([receipts, timers.size]).toEqual([[null, null], 0]);
});
