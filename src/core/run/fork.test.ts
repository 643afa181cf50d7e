import { describe, expect, test } from "vitest";
import { dataOf, type NewEvent, newEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { createFork } from "./fork.js";
import type { EventData, EventType } from "./stored-schema.js";

const stored = (events: readonly NewEvent[]): StoredEvent[] =>
  events.map((one, index) => ({ ...one, seq: index + 1, at: 1_000 + index }));

const eventOn = <T extends EventType>(type: T, node: string | null, data?: EventData[T]): NewEvent =>
  newEvent(type, node === null ? {} : { node, attempt: 1 }, data ?? ({} as EventData[T]));

/** A run that starts, does this, and ends; and what another takes over from it. */
function forked(fromEvents: readonly NewEvent[], toEvents: readonly NewEvent[] = [], onFailure: string | null = null) {
  const fromLog = stored([eventOn("run.started", null, {}), ...fromEvents]);
  const fork = createFork({ fromRunId: "first", fromLog, toRunId: "second", toLog: stored(toEvents), onFailure });
  const all = stored([...toEvents, ...fork.events]);
  const at = fork.events.find(({ type }) => type === "run.forked") as NewEvent;
  return { fork, all, state: fold(all), said: dataOf(at, "run.forked") };
}

describe("keys", () => {
  test("what is unfinished has the key of the first run, however long the line is", () => {
    const one = forked([eventOn("step.failed", "charge", { error: { name: "Error", message: "no" } })]);
    expect(one.said).toEqual({ from: "first", root: "first", redo: ["charge"] });
    const two = createFork({ fromRunId: "second", fromLog: one.all, toRunId: "third", toLog: [], onFailure: null });
    expect(dataOf(two.events[1] as NewEvent, "run.forked")).toEqual({
      from: "second",
      root: "first",
      redo: ["charge"],
    });
  });

  test("what was undone has a new one each time, with all that belongs to it", () => {
    const { said, state, fork } = forked([
      eventOn("step.completed", "book/inner", {}),
      eventOn("step.completed", "book", { undo: true }),
      eventOn("step.completed", "look", {}),
      eventOn("step.completed", "book#compensate", {}),
    ]);
    expect(said).toEqual({ from: "first", root: "first", keyRunIds: { book: "second" }, redo: ["book/inner", "book"] });
    expect([...state.ops.keys()]).toEqual(["look"]);
    expect([fork.keepsCursor("book"), fork.keepsCursor("look")]).toEqual([false, true]);
  });

  test("what was done because the run failed is its own business", () => {
    const past = [eventOn("step.completed", "on_failure", {})];
    expect(forked(past, [], "on_failure").state.ops.size).toBe(0);
    expect(forked(past, [], "on_failure").said.redo).toEqual([]);
    // Without such a thing in the code, it is a step like any other.
    expect(forked(past).state.ops.size).toBe(1);
  });
});

describe("signals", () => {
  const received = (name: string, key?: string) =>
    eventOn("signal.received", null, key === undefined ? { name } : { name, key });
  const waits = (node: string, name: string) => eventOn("wait.started", node, { names: [name], mode: "any" });

  test("those that were not consumed wait for the next; numbers are those of the new log", () => {
    const { state } = forked(
      [received("a"), received("b"), waits("signal:b", "b"), eventOn("wait.completed", "signal:b", { signals: [3] })],
      [received("c")],
    );
    expect(state.pendingSignals.map(({ name }) => name)).toEqual(["c", "a"]);
    expect(state.ops.get("signal:b")).toMatchObject({ phase: "completed", signals: [{ name: "b" }] });
  });

  test("those that ended a pause, or that a handler used before it started over, are used up", () => {
    const { state } = forked([
      received("a"),
      eventOn("run.paused", "s", { reason: "r", resumeOn: "a" }),
      eventOn("run.resumed", null, { by: "signal", signal: 2 }),
      received("b"),
      waits("signal:b", "b"),
      eventOn("wait.completed", "signal:b", { signals: [5] }),
      eventOn("run.reattempted", null, { waitMs: 0, rewind: true }),
      received("d"),
    ]);
    expect(state.pendingSignals.map(({ name }) => name)).toEqual(["d"]);
  });

  test("one that was sent again to the new run, with its key, is there once", () => {
    const { state } = forked([received("a", "k"), received("b", "l")], [received("a", "k")]);
    expect(state.pendingSignals.map(({ name }) => name)).toEqual(["a", "b"]);
  });
});

describe("children", () => {
  const started = { workflow: "w", count: 3, concurrency: 3, tolerate: 0, spawned: 3, released: 3 };

  test("those of a map that is over are referred to, those of others can be found", () => {
    const whole = [
      eventOn("map.started", "m", started),
      eventOn("map.settled", "m", { completed: [[0, 2]], failed: [] }),
    ];
    const { state } = forked([
      ...whole,
      eventOn("map.started", "n", started),
      eventOn("child.started", "c", child("c1")),
    ]);
    expect(state.ops.get("m")).toMatchObject({
      phase: "settled",
      adopted: [{ run: "first", node: "m", indexes: [[0, 2]] }],
    });
    expect(Object.fromEntries(state.lineage?.childrenOrigins ?? [])).toEqual({
      n: [{ run: "first", node: "n" }],
      c: [{ run: "first", node: "c" }],
    });
    expect([...(state.callsToRedo ?? [])]).toEqual(["n", "c"]);
  });

  test("the newest run comes first, and one that did not get there leaves what was known", () => {
    const one = forked([eventOn("child.started", "c", child("c1")), eventOn("child.started", "d", child("d1"))]);
    const fromLog = stored([...one.all, eventOn("child.started", "c", child("c2"))]);
    const two = createFork({ fromRunId: "second", fromLog, toRunId: "third", toLog: [], onFailure: null });
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
      eventOn("map.started", "m", { ...started, from }),
      eventOn("map.settled", "m", { completed: [[0, 0]], failed: [] }),
      eventOn("map.settled", "m", { completed: [[2, 2]], failed: [] }),
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
    eventOn("step.completed", "a", {}),
    eventOn("run.moved", null, { to: "c" }),
    eventOn("step.completed", "c", {}),
  ]);
  expect(state.movedToStep).toBe("c");
  expect([...state.ops.keys()]).toEqual(["c"]);
});

test("a run that failed before it had begun gives its signals, and begins when it begins", () => {
  const fromLog = stored([eventOn("signal.received", null, { name: "a" })]);
  const fork = createFork({ fromRunId: "first", fromLog, toRunId: "second", toLog: [], onFailure: null });
  expect(fork.events.map(({ type }) => type)).toEqual(["run.forked", "signal.received"]);
});
