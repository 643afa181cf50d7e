import { expect, test } from "vitest";
import { event } from "../../core/run/event.js";
import { keep } from "../../core/run/transition.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { PendingWrites } from "./pending-writes.js";

test("what was put in goes out once, all of it, at the position it is given", () => {
  const pendingWrites = new PendingWrites();
  expect(pendingWrites.empty).toBe(true);
  pendingWrites.events.push(event("run.started", {}));
  pendingWrites.starts.push(newRun());
  pendingWrites.mail.push({ to: "x", kind: "cancel", data: "{}" });
  pendingWrites.release.push("y");
  pendingWrites.drained.push(3);
  pendingWrites.cursor({ node: "n", progress: "1" });
  expect(pendingWrites.empty).toBe(false);
  const taken = pendingWrites.take("r", 4, [], keep);
  expect(taken).toMatchObject({
    runId: "r",
    after: 4,
    next: keep,
    drained: [3],
    release: ["y"],
    cursors: [{ node: "n", progress: "1" }],
  });
  expect([taken.events.length, taken.starts.length, taken.mail.length]).toEqual([1, 1, 1]);
  expect(pendingWrites.empty).toBe(true);
  expect(pendingWrites.take("r", 5, [], keep)).toMatchObject({
    events: [],
    starts: [],
    mail: [],
    release: [],
    drained: [],
    cursors: [],
  });
});

test("remembers the earliest of its waits until they are taken", () => {
  const pendingWrites = new PendingWrites();
  pendingWrites.open(event("timer.started", { node: "a" }, { ms: 50 }), { inMs: 50 });
  pendingWrites.open(event("timer.started", { node: "b" }, { ms: 20 }), { inMs: 20 });
  pendingWrites.open(event("timer.started", { node: "c" }, { until: 900 }), { at: 900 });
  pendingWrites.open(event("timer.started", { node: "d" }, { until: 500 }), { at: 500 });
  pendingWrites.open(event("wait.started", { node: "e" }, { names: ["x"], mode: "any" }));
  expect([pendingWrites.wakeIn, pendingWrites.wakeAt, pendingWrites.events.length]).toEqual([20, 500, 5]);
  pendingWrites.take("r", 0, [], keep);
  expect([pendingWrites.wakeIn, pendingWrites.wakeAt]).toEqual([null, null]);
});

test("keeps one write per cursor, the latest of each column", () => {
  const pendingWrites = new PendingWrites();
  pendingWrites.cursor({ node: "n", progress: "1" });
  pendingWrites.cursor({ node: "n", cursor: "c" });
  pendingWrites.cursor({ node: "n", progress: "2" });
  expect(pendingWrites.take("r", 0, [], keep).cursors).toEqual([{ node: "n", progress: "2", cursor: "c" }]);
});

test("what was handed out stays as it is while the pending writes fills anew, also what was empty", () => {
  const pendingWrites = new PendingWrites();
  const first = pendingWrites.take("r", 0, [], keep);
  pendingWrites.events.push(event("run.started", {}));
  pendingWrites.starts.push(newRun());
  pendingWrites.mail.push({ to: "x", kind: "cancel", data: "{}" });
  pendingWrites.release.push("y");
  pendingWrites.drained.push(3);
  expect([first.events, first.starts, first.mail, first.release, first.drained]).toEqual([[], [], [], [], []]);
});
