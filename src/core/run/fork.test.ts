import { describe, expect, test } from "vitest";
import { dataOf, type NewEvent, newEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { createFork } from "./fork.js";
import type { EventData, EventType } from "./stored-schema.js";

const stored = (events: readonly NewEvent[]): StoredEvent[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 1_000 + index }));

const eventOn = <T extends EventType>(type: T, node: string | null, data?: EventData[T]): NewEvent =>
  newEvent(type, node === null ? {} : { node, attempt: 1 }, data ?? ({} as EventData[T]));

/** A run "first" with these events, and the log of its retry "second". */
function forked(fromEvents: readonly NewEvent[], toEvents: readonly NewEvent[] = [], onFailure: string | null = null) {
  const fromLog = stored([eventOn("run.started", null, {}), ...fromEvents]);
  const fork = createFork({ fromRunId: "first", fromLog, toRunId: "second", toLog: stored(toEvents), onFailure });
  const all = stored([...toEvents, ...fork.events]);
  const forkedEvent = fork.events.find(({ type }) => type === "run.forked") as NewEvent;
  return { fork, all, state: fold(all), forkData: dataOf(forkedEvent, "run.forked") };
}

describe("idempotency keys", () => {
  test("an unfinished step keeps the key of the first run, also in a retry of a retry", () => {
    const retry = forked([eventOn("step.failed", "charge", { error: { name: "Error", message: "no" } })]);
    expect(retry.forkData).toEqual({ from: "first", root: "first", redo: ["charge"] });
    const second = createFork({
      fromRunId: "second",
      fromLog: retry.all,
      toRunId: "third",
      toLog: [],
      onFailure: null,
    });
    expect(dataOf(second.events[1] as NewEvent, "run.forked")).toEqual({
      from: "second",
      root: "first",
      redo: ["charge"],
    });
  });

  test("a compensated step gets a new key, and nothing of it is inherited", () => {
    const { forkData, state, fork } = forked([
      eventOn("step.completed", "book/inner", {}),
      eventOn("step.completed", "book", { undo: true }),
      eventOn("step.completed", "look", {}),
      eventOn("step.completed", "book#compensate", {}),
    ]);
    expect(forkData).toEqual({
      from: "first",
      root: "first",
      keyRunIds: { book: "second" },
      redo: ["book/inner", "book"],
    });
    expect([...state.ops.keys()]).toEqual(["look"]);
    expect([fork.keepsCursor("book"), fork.keepsCursor("look")]).toEqual([false, true]);
  });

  test("the step of onFailure is not inherited", () => {
    const events = [eventOn("step.completed", "on_failure", {})];
    expect(forked(events, [], "on_failure").state.ops.size).toBe(0);
    expect(forked(events, [], "on_failure").forkData.redo).toEqual([]);
    // If the workflow has no onFailure, it is a step like any other.
    expect(forked(events).state.ops.size).toBe(1);
  });
});

describe("signals", () => {
  const received = (name: string, key?: string) =>
    eventOn("signal.received", null, key === undefined ? { name } : { name, key });
  const waits = (node: string, name: string) => eventOn("wait.started", node, { names: [name], mode: "any" });

  test("pending signals are inherited, and waits refer to signals by their numbers in the new log", () => {
    const { state } = forked(
      [received("a"), received("b"), waits("signal:b", "b"), eventOn("wait.completed", "signal:b", { signals: [3] })],
      [received("c")],
    );
    expect(state.pendingSignals.map(({ name }) => name)).toEqual(["c", "a"]);
    expect(state.ops.get("signal:b")).toMatchObject({ phase: "completed", signals: [{ name: "b" }] });
  });

  test("signals that ended a pause, or were consumed before the handler started over, are not inherited", () => {
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

  test("a signal that was sent to the retry with the same key is not inherited", () => {
    const { state } = forked([received("a", "k"), received("b", "l")], [received("a", "k")]);
    expect(state.pendingSignals.map(({ name }) => name)).toEqual(["a", "b"]);
  });
});

describe("children", () => {
  const started = { workflow: "w", count: 3, concurrency: 3, tolerate: 0, spawned: 3, released: 3 };

  test("a settled map refers to its children, and other calls know the origins of theirs", () => {
    const settledMap = [
      eventOn("map.started", "m", started),
      eventOn("map.settled", "m", { completed: [[0, 2]], failed: [] }),
    ];
    const { state } = forked([
      ...settledMap,
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

  test("the newest origin comes first, and origins of earlier runs are kept", () => {
    const retry = forked([eventOn("child.started", "c", child("c1")), eventOn("child.started", "d", child("d1"))]);
    const fromLog = stored([...retry.all, eventOn("child.started", "c", child("c2"))]);
    const second = createFork({ fromRunId: "second", fromLog, toRunId: "third", toLog: [], onFailure: null });
    expect(dataOf(second.events[1] as NewEvent, "run.forked").children).toEqual({
      c: [
        { run: "second", node: "c" },
        { run: "first", node: "c" },
      ],
      d: [{ run: "first", node: "d" }],
    });
  });

  test("a map may refer to children of several runs", () => {
    const from = [{ run: "zero", node: "m", indexes: [[1, 1]] as [number, number][] }];
    const events = [
      eventOn("map.started", "m", { ...started, from }),
      eventOn("map.settled", "m", { completed: [[0, 0]], failed: [] }),
      eventOn("map.settled", "m", { completed: [[2, 2]], failed: [] }),
    ];
    expect(forked(events).state.ops.get("m")).toMatchObject({
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

test("a retry continues at the step that an operator has moved the run to", () => {
  const { state } = forked([
    eventOn("step.completed", "a", {}),
    eventOn("run.moved", null, { to: "c" }),
    eventOn("step.completed", "c", {}),
  ]);
  expect(state.movedToStep).toBe("c");
  expect([...state.ops.keys()]).toEqual(["c"]);
});

test("a retry of a run that failed before it started inherits its signals, and no start", () => {
  const fromLog = stored([eventOn("signal.received", null, { name: "a" })]);
  const fork = createFork({ fromRunId: "first", fromLog, toRunId: "second", toLog: [], onFailure: null });
  expect(fork.events.map(({ type }) => type)).toEqual(["run.forked", "signal.received"]);
});
