import { describe, expect, test } from "vitest";
import { dataOf, event, type NewEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { forkOf } from "./fork.js";
import type { EventData, EventType } from "./stored-schema.js";

const stored = (events: readonly NewEvent[]): StoredEvent[] =>
  events.map((one, index) => ({ ...one, seq: index + 1, at: 1_000 + index }));

const on = <T extends EventType>(type: T, node: string | null, data?: EventData[T]): NewEvent =>
  event(type, node === null ? {} : { node, attempt: 1 }, data ?? ({} as EventData[T]));

/** A run that starts, does this, and ends; and what another takes over from it. */
function forked(past: readonly NewEvent[], own: readonly NewEvent[] = [], onFailure: string | null = null) {
  const log = stored([on("run.started", null, {}), ...past]);
  const fork = forkOf({ from: "first", log, to: "second", own: stored(own), onFailure });
  const all = stored([...own, ...fork.events]);
  const at = fork.events.find(({ type }) => type === "run.forked") as NewEvent;
  return { fork, all, state: fold(all), said: dataOf(at, "run.forked") };
}

describe("keys", () => {
  test("what is unfinished has the key of the first run, however long the line is", () => {
    const one = forked([on("step.failed", "charge", { error: { name: "Error", message: "no" } })]);
    expect(one.said).toEqual({ from: "first", root: "first", redo: ["charge"] });
    const two = forkOf({ from: "second", log: one.all, to: "third", own: [], onFailure: null });
    expect(dataOf(two.events[1] as NewEvent, "run.forked")).toEqual({
      from: "second",
      root: "first",
      redo: ["charge"],
    });
  });

  test("what was undone has a new one each time, with all that belongs to it", () => {
    const { said, state, fork } = forked([
      on("step.completed", "book/inner", {}),
      on("step.completed", "book", { undo: true }),
      on("step.completed", "look", {}),
      on("step.completed", "book#compensate", {}),
    ]);
    expect(said).toEqual({ from: "first", root: "first", roots: { book: "second" }, redo: ["book/inner", "book"] });
    expect([...state.ops.keys()]).toEqual(["look"]);
    expect([fork.keepsCursor("book"), fork.keepsCursor("look")]).toEqual([false, true]);
  });

  test("what was done because the run failed is its own business", () => {
    const past = [on("step.completed", "on_failure", {})];
    expect(forked(past, [], "on_failure").state.ops.size).toBe(0);
    expect(forked(past, [], "on_failure").said.redo).toEqual([]);
    // Without such a thing in the code, it is a step like any other.
    expect(forked(past).state.ops.size).toBe(1);
  });
});

describe("signals", () => {
  const received = (name: string, key?: string) =>
    on("signal.received", null, key === undefined ? { name } : { name, key });
  const waits = (node: string, name: string) => on("wait.started", node, { names: [name], mode: "any" });

  test("those that were not consumed wait for the next; numbers are those of the new log", () => {
    const { state } = forked(
      [received("a"), received("b"), waits("signal:b", "b"), on("wait.completed", "signal:b", { signals: [3] })],
      [received("c")],
    );
    expect(state.signals.map(({ name }) => name)).toEqual(["c", "a"]);
    expect(state.ops.get("signal:b")).toMatchObject({ phase: "completed", signals: [{ name: "b" }] });
  });

  test("those that ended a pause, or that a handler used before it started over, are used up", () => {
    const { state } = forked([
      received("a"),
      on("run.paused", "s", { reason: "r", resumeOn: "a" }),
      on("run.resumed", null, { by: "signal", signal: 2 }),
      received("b"),
      waits("signal:b", "b"),
      on("wait.completed", "signal:b", { signals: [5] }),
      on("run.reattempted", null, { waitMs: 0, rewind: true }),
      received("d"),
    ]);
    expect(state.signals.map(({ name }) => name)).toEqual(["d"]);
  });

  test("one that was sent again to the new run, with its key, is there once", () => {
    const { state } = forked([received("a", "k"), received("b", "l")], [received("a", "k")]);
    expect(state.signals.map(({ name }) => name)).toEqual(["a", "b"]);
  });
});

describe("children", () => {
  const started = { workflow: "w", count: 3, concurrency: 3, tolerate: 0, spawned: 3, released: 3 };

  test("those of a map that is over are referred to, those of others can be found", () => {
    const whole = [on("map.started", "m", started), on("map.settled", "m", { completed: [[0, 2]], failed: [] })];
    const { state } = forked([...whole, on("map.started", "n", started), on("child.started", "c", child("c1"))]);
    expect(state.ops.get("m")).toMatchObject({
      phase: "settled",
      adopted: [{ run: "first", node: "m", indexes: [[0, 2]] }],
    });
    expect(Object.fromEntries(state.lineage?.children ?? [])).toEqual({
      n: [{ run: "first", node: "n" }],
      c: [{ run: "first", node: "c" }],
    });
    expect([...(state.redo ?? [])]).toEqual(["n", "c"]);
  });

  test("the newest run comes first, and one that did not get there leaves what was known", () => {
    const one = forked([on("child.started", "c", child("c1")), on("child.started", "d", child("d1"))]);
    const log = stored([...one.all, on("child.started", "c", child("c2"))]);
    const two = forkOf({ from: "second", log, to: "third", own: [], onFailure: null });
    expect(dataOf(two.events[1] as NewEvent, "run.forked").children).toEqual({
      c: [
        { run: "second", node: "c" },
        { run: "first", node: "c" },
      ],
      d: [{ run: "first", node: "d" }],
    });
  });

  test("results of a map that come from several runs stay where they are", () => {
    const from = [{ run: "zero", node: "m", indexes: [[1, 1]] as [number, number][] }];
    const past = [
      on("map.started", "m", { ...started, from }),
      on("map.settled", "m", { completed: [[0, 0]], failed: [] }),
      on("map.settled", "m", { completed: [[2, 2]], failed: [] }),
    ];
    expect(forked(past).state.ops.get("m")).toMatchObject({
      adopted: [
        { run: "zero", node: "m", indexes: [[1, 1]] },
        {
          run: "first",
          node: "m",
          indexes: [
            [0, 0],
            [2, 2],
          ],
        },
      ],
    });
  });
});

const child = (runId: string) => ({ runId, workflow: "w" });

test("a run that an operator sent elsewhere stays there", () => {
  const { state } = forked([
    on("step.completed", "a", {}),
    on("run.moved", null, { to: "c" }),
    on("step.completed", "c", {}),
  ]);
  expect(state.position).toBe("c");
  expect([...state.ops.keys()]).toEqual(["c"]);
});

test("a run that failed before it had begun gives its signals, and begins when it begins", () => {
  const log = stored([on("signal.received", null, { name: "a" })]);
  const fork = forkOf({ from: "first", log, to: "second", own: [], onFailure: null });
  expect(fork.events.map(({ type }) => type)).toEqual(["run.forked", "signal.received"]);
});
