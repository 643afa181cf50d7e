import { expect, test } from "vitest";
import { newEvent } from "../../core/run/event.js";
import { keepOwner } from "../../core/run/transition.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { PendingWrites } from "./pending-writes.js";

test("take returns all pending writes once, at the given position", () => {
  const pendingWrites = new PendingWrites();
  expect(pendingWrites.isEmpty).toBe(true);
  pendingWrites.events.push(newEvent("run.started", {}));
  pendingWrites.starts.push(newRun());
  pendingWrites.messages.push({ to: "x", kind: "cancel", data: "{}" });
  pendingWrites.releasedChildIds.push("y");
  pendingWrites.drainedInboxIds.push(3);
  pendingWrites.setCursor({ node: "n", progress: "1" });
  expect(pendingWrites.isEmpty).toBe(false);
  const taken = pendingWrites.take("r", 4, [], keepOwner);
  expect(taken).toMatchObject({
    runId: "r",
    afterSeq: 4,
    next: keepOwner,
    drainedInboxIds: [3],
    releasedChildIds: ["y"],
    cursors: [{ node: "n", progress: "1" }],
  });
  expect([taken.events.length, taken.newChildren.length, taken.messages.length]).toEqual([1, 1, 1]);
  expect(pendingWrites.isEmpty).toBe(true);
  expect(pendingWrites.take("r", 5, [], keepOwner)).toMatchObject({
    events: [],
    newChildren: [],
    messages: [],
    releasedChildIds: [],
    drainedInboxIds: [],
    cursors: [],
  });
});

test("the earliest due time of the pending waits is kept until they are taken", () => {
  const pendingWrites = new PendingWrites();
  pendingWrites.addWaitEvent(newEvent("timer.started", { node: "a" }, { ms: 50 }), { inMs: 50 });
  pendingWrites.addWaitEvent(newEvent("timer.started", { node: "b" }, { ms: 20 }), { inMs: 20 });
  pendingWrites.addWaitEvent(newEvent("timer.started", { node: "c" }, { until: 900 }), { at: 900 });
  pendingWrites.addWaitEvent(newEvent("timer.started", { node: "d" }, { until: 500 }), { at: 500 });
  pendingWrites.addWaitEvent(newEvent("wait.started", { node: "e" }, { names: ["x"], mode: "any" }));
  expect([pendingWrites.wakeInMs, pendingWrites.wakeAt, pendingWrites.events.length]).toEqual([20, 500, 5]);
  pendingWrites.take("r", 0, [], keepOwner);
  expect([pendingWrites.wakeInMs, pendingWrites.wakeAt]).toEqual([null, null]);
});

test("each cursor has one write with the latest value of each column", () => {
  const pendingWrites = new PendingWrites();
  pendingWrites.setCursor({ node: "n", progress: "1" });
  pendingWrites.setCursor({ node: "n", cursor: "c" });
  pendingWrites.setCursor({ node: "n", progress: "2" });
  expect(pendingWrites.take("r", 0, [], keepOwner).cursors).toEqual([{ node: "n", progress: "2", cursor: "c" }]);
});

test("a transition that was taken does not change when new writes are added, even if it was empty", () => {
  const pendingWrites = new PendingWrites();
  const first = pendingWrites.take("r", 0, [], keepOwner);
  pendingWrites.events.push(newEvent("run.started", {}));
  pendingWrites.starts.push(newRun());
  pendingWrites.messages.push({ to: "x", kind: "cancel", data: "{}" });
  pendingWrites.releasedChildIds.push("y");
  pendingWrites.drainedInboxIds.push(3);
  expect([first.events, first.newChildren, first.messages, first.releasedChildIds, first.drainedInboxIds]).toEqual([
    [],
    [],
    [],
    [],
    [],
  ]);
});
