import { expect, test } from "vitest";
import { event } from "../../core/run/event.js";
import { keep } from "../../core/run/transition.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { Outbox } from "./pending-writes.js";

test("what was put in goes out once, all of it, at the position it is given", () => {
  const outbox = new Outbox();
  expect(outbox.empty).toBe(true);
  outbox.events.push(event("run.started", {}));
  outbox.starts.push(newRun());
  outbox.mail.push({ to: "x", kind: "cancel", data: "{}" });
  outbox.release.push("y");
  outbox.drained.push(3);
  outbox.cursor({ node: "n", progress: "1" });
  expect(outbox.empty).toBe(false);
  const taken = outbox.take("r", 4, [], keep);
  expect(taken).toMatchObject({
    runId: "r",
    after: 4,
    next: keep,
    drained: [3],
    release: ["y"],
    cursors: [{ node: "n", progress: "1" }],
  });
  expect([taken.events.length, taken.starts.length, taken.mail.length]).toEqual([1, 1, 1]);
  expect(outbox.empty).toBe(true);
  expect(outbox.take("r", 5, [], keep)).toMatchObject({
    events: [],
    starts: [],
    mail: [],
    release: [],
    drained: [],
    cursors: [],
  });
});

test("remembers the earliest of its waits until they are taken", () => {
  const outbox = new Outbox();
  outbox.open(event("timer.started", { node: "a" }, { ms: 50 }), { inMs: 50 });
  outbox.open(event("timer.started", { node: "b" }, { ms: 20 }), { inMs: 20 });
  outbox.open(event("timer.started", { node: "c" }, { until: 900 }), { at: 900 });
  outbox.open(event("timer.started", { node: "d" }, { until: 500 }), { at: 500 });
  outbox.open(event("wait.started", { node: "e" }, { names: ["x"], mode: "any" }));
  expect([outbox.wakeIn, outbox.wakeAt, outbox.events.length]).toEqual([20, 500, 5]);
  outbox.take("r", 0, [], keep);
  expect([outbox.wakeIn, outbox.wakeAt]).toEqual([null, null]);
});

test("keeps one write per cursor, the latest of each column", () => {
  const outbox = new Outbox();
  outbox.cursor({ node: "n", progress: "1" });
  outbox.cursor({ node: "n", cursor: "c" });
  outbox.cursor({ node: "n", progress: "2" });
  expect(outbox.take("r", 0, [], keep).cursors).toEqual([{ node: "n", progress: "2", cursor: "c" }]);
});

test("what was handed out stays as it is while the outbox fills anew, also what was empty", () => {
  const outbox = new Outbox();
  const first = outbox.take("r", 0, [], keep);
  outbox.events.push(event("run.started", {}));
  outbox.starts.push(newRun());
  outbox.mail.push({ to: "x", kind: "cancel", data: "{}" });
  outbox.release.push("y");
  outbox.drained.push(3);
  expect([first.events, first.starts, first.mail, first.release, first.drained]).toEqual([[], [], [], [], []]);
});
