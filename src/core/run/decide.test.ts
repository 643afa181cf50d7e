import { describe, expect, test } from "vitest";
import { encode } from "../encoding/encode.js";
import { InvalidStateError } from "../errors/errors.js";
import { hasOpenChildren } from "./cancel-children.js";
import type { ReceivedCommand } from "./command.js";
import { decide } from "./decide.js";
import { dataOf, type NewEvent, newEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import type { Range } from "./ranges.js";
import type { RunState } from "./state.js";
import type { Command } from "./stored-schema.js";

const minute = 60_000;
const started = newEvent("run.started", {});
const timer = (node: string, ms: number) => newEvent("timer.started", { node }, { ms });
const wait = (node: string, names: string[], timeoutMs?: number, mode: "any" | "all" = "any") =>
  newEvent("wait.started", { node }, timeoutMs === undefined ? { names, mode } : { names, mode, timeoutMs });
const signalEvent = (name: string, payload: unknown = null, key?: string) =>
  newEvent("signal.received", {}, key === undefined ? { name } : { name, key }, { payload: text(payload) });
const retry = (node: string, attempt: number, retryMs: number) =>
  newEvent(
    "step.failed",
    { node, attempt, outcome: "reattempted_by_exception" },
    { error: { name: "E", message: "m" }, retryMs },
  );
const map = (node: string, count: number) =>
  newEvent(
    "map.started",
    { node },
    { workflow: "child", count, concurrency: count, tolerate: 0, spawned: count, released: count },
  );

const text = (value: unknown) => encode(value, { label: "value" });
const send = (name: string, payload: unknown = null, key: string | null = null): Command => ({
  type: "signal",
  name,
  payload: text(payload),
  key,
});
const pause: Command = { type: "pause", reason: null };
const resume: Command = { type: "resume", output: null };
const skip: Command = { type: "skip" };
const cancel: Command = { type: "cancel", reason: "enough" };
const child = (
  node: string,
  index: number | null,
  status: "completed" | "failed" | "canceled",
  output: unknown = null,
): Command => {
  if (index !== null) {
    const [completed, failed]: [Range[], Range[]] =
      status === "completed" ? [[[index, index]], []] : [[], [[index, index]]];
    return { type: "children", node, completed, failed };
  }
  return {
    type: "child",
    node,
    status,
    output: status === "completed" ? text(output) : null,
    error: status === "failed" ? { name: "E", message: "child" } : null,
    reason: null,
  };
};

type TimedEvent = NewEvent | readonly [at: number, event: NewEvent];

/** A log whose events happened at time 0, or when it says. */
function log(events: readonly TimedEvent[]): StoredEvent[] {
  return events.map((one, index) => {
    const [at, given] = Array.isArray(one) ? (one as readonly [number, NewEvent]) : [0, one as NewEvent];
    return { ...given, seq: index + 1, at };
  });
}

/** `given(...events).when(command, at).then(...lines)` */
function stateAfter(...events: TimedEvent[]) {
  const state = () => fold(log(events));
  const judge = (received: readonly ReceivedCommand[], now: number) => ({
    // biome-ignore lint/suspicious/noThenProperty: given, when, then; nobody awaits it
    then: (...lines: string[]) => expect(decide(state(), received, now).map(formatEvent)).toEqual(lines),
    thenRefused: () => {
      const before = state();
      expect(() => decide(before, received, now)).toThrow(InvalidStateError);
      expect(before).toEqual(state());
    },
  });
  return {
    state,
    /** One command of a client, at this time. */
    when: (command: Command, at = 0) => judge([{ command, at, strict: true }], at),
    /** The owner drains an inbox at a later time. */
    whenDrained: (inbox: readonly (readonly [at: number, command: Command])[], now: number) =>
      judge(
        inbox.map(([at, command]) => ({ command, at, strict: false })),
        now,
      ),
    whenTimePasses: (now: number) => judge([], now),
  };
}

/** "step.skipped pay", with what matters of its data. */
function formatEvent(one: NewEvent): string {
  const details = {
    "wait.completed": () => JSON.stringify(dataOf(one, "wait.completed").signals),
    "run.resumed": () => dataOf(one, "run.resumed").by,
    "map.settled": () => JSON.stringify(dataOf(one, "map.settled")),
    "signal.received": () => dataOf(one, "signal.received").name,
    "run.failed": () => dataOf(one, "run.failed").error.name,
  }[one.type];
  return [one.type, one.node, details?.()].filter((part) => part !== null && part !== undefined).join(" ");
}

describe("signals", () => {
  test("are recorded when nobody waits", () => {
    stateAfter(started).when(send("go")).then("signal.received go");
  });

  test("satisfy a wait that is open, in the same decision", () => {
    stateAfter(started, wait("w", ["go"]))
      .when(send("go"))
      .then("signal.received go", "wait.completed w [3]");
  });

  test("satisfy the oldest of several waits", () => {
    stateAfter(started, wait("w1", ["go"]), wait("w2", ["go"]))
      .whenDrained([[0, send("go")]], 0)
      .then("signal.received go", "wait.completed w1 [4]");
  });

  test("that were buffered satisfy a wait that was opened since, the oldest signal first", () => {
    stateAfter(started, signalEvent("go", 1), signalEvent("go", 2), wait("w", ["go"]))
      .whenTimePasses(0)
      .then("wait.completed w [2]");
  });

  test("with a key that is known are passed over", () => {
    stateAfter(started, signalEvent("go", 1, "k"))
      .when(send("go", 2, "k"))
      .then();
    stateAfter(started)
      .whenDrained(
        [
          [0, send("go", 1, "k")],
          [0, send("go", 2, "k")],
          [0, send("go", 3, "other")],
        ],
        0,
      )
      .then("signal.received go", "signal.received go");
  });

  test("that came before the deadline beat the timeout, however late they are read", () => {
    stateAfter(started, wait("w", ["go"], minute))
      .whenDrained([[minute - 1, send("go")]], 10 * minute)
      .then("signal.received go", "wait.completed w [3]");
  });

  test("that came after the deadline do not, though nobody had noticed the timeout yet", () => {
    stateAfter(started, wait("w", ["go"], minute))
      .whenDrained([[minute + 1, send("go")]], 10 * minute)
      .then("wait.timed_out w", "signal.received go");
    stateAfter(started, wait("w", ["go"], minute))
      .when(send("go"), minute + 1)
      .then("wait.timed_out w", "signal.received go");
  });

  test("for all of several names complete a wait only together, in the order of its names", () => {
    const both = [started, wait("w", ["a", "b"], undefined, "all")] as const;
    stateAfter(...both)
      .when(send("b"))
      .then("signal.received b");
    stateAfter(...both, signalEvent("b"))
      .when(send("a"))
      .then("signal.received a", "wait.completed w [4,3]");
  });

  test("are numbered where they will stand in the log, not where the state ends", () => {
    const state = fold(log([started, wait("w", ["go"])]));
    const events = decide(state, [{ command: send("go"), at: 0, strict: true }], 0, 10);
    expect(dataOf(events[1] as NewEvent, "wait.completed").signals).toEqual([10]);
  });
});

describe("time", () => {
  test("fires what is due, in the order in which it became due", () => {
    stateAfter(
      started,
      timer("late", 3 * minute),
      wait("w", ["x"], 2 * minute),
      timer("early", minute),
      timer("future", 10 * minute),
    )
      .whenTimePasses(5 * minute)
      .then("timer.fired early", "wait.timed_out w", "timer.fired late");
  });

  test("does not fire a moment early", () => {
    stateAfter(started, timer("t", minute))
      .whenTimePasses(minute - 1)
      .then();
    stateAfter(started, timer("t", minute)).whenTimePasses(minute).then("timer.fired t");
  });

  test("counts from when the timer was recorded", () => {
    stateAfter(started, [minute, timer("t", minute)])
      .whenTimePasses(2 * minute - 1)
      .then();
  });

  test("stands still for a paused run, and catches up when it is resumed", () => {
    const paused = stateAfter(started, timer("t", minute), newEvent("run.paused", {}, { reason: "r" }));
    paused.whenTimePasses(10 * minute).then();
    paused.when(resume, 10 * minute).then("run.resumed operator", "timer.fired t");
  });

  test("does not touch waits and timers that were withdrawn or are over", () => {
    stateAfter(
      started,
      timer("t", minute),
      newEvent("wait.withdrawn", { node: "t" }),
      timer("u", minute),
      newEvent("timer.fired", { node: "u" }),
    )
      .whenTimePasses(minute)
      .then();
  });

  test("wakes a handler that asked to run again", () => {
    const again = stateAfter(started, newEvent("run.reattempted", {}, { waitMs: minute, rewind: false }));
    again.whenTimePasses(minute - 1).then();
    again.whenTimePasses(minute).then("run.woken");
  });

  test("fails a run that exceeds its limit, once, and nothing happens after that", () => {
    stateAfter(newEvent("run.started", {}, { timeoutMs: minute }), timer("t", 2 * minute), wait("w", ["go"]))
      .whenDrained([[3 * minute, send("go")]], 4 * minute)
      .then("timer.fired t", "run.failed TimeoutError");
  });

  test("of a recheck resumes a paused run", () => {
    const paused = stateAfter(started, newEvent("run.paused", {}, { reason: "r", recheckMs: minute }));
    paused.whenTimePasses(minute - 1).then();
    paused.whenTimePasses(minute).then("run.resumed recheck");
  });
});

describe("pause and resume", () => {
  const paused = newEvent("run.paused", {}, { reason: "r" });
  const stuckAt = (node: string) => newEvent("run.paused", { node }, { reason: "r" });

  test("alternate; twice the same is refused", () => {
    stateAfter(started).when(pause).then("run.paused");
    stateAfter(started, paused).when(pause).thenRefused();
    stateAfter(started, paused).when(resume).then("run.resumed operator");
    stateAfter(started).when(resume).thenRefused();
  });

  test("by a signal that the pause waits for", () => {
    const waiting = stateAfter(started, newEvent("run.paused", {}, { reason: "r", resumeOn: "fixed" }));
    waiting.when(send("other")).then("signal.received other");
    waiting.when(send("fixed")).then("signal.received fixed", "run.resumed signal");
  });

  test("by a signal that had come already", () => {
    stateAfter(started, signalEvent("fixed"), newEvent("run.paused", {}, { reason: "r", resumeOn: "fixed" }))
      .whenTimePasses(0)
      .then("run.resumed signal");
  });

  test("with an output end the step that the run is stuck at", () => {
    const output: Command = { type: "resume", output: text("by hand") };
    stateAfter(started, retry("pay", 2, 0), stuckAt("pay"))
      .when(output)
      .then("step.completed pay", "run.resumed operator");
    stateAfter(started, newEvent("step.started", { node: "pay", attempt: 1 }), stuckAt("pay"))
      .when(output)
      .then("step.completed pay", "run.resumed operator");
    stateAfter(started, paused).when(output).thenRefused();
  });

  test("skip passes over the step that the run is stuck at, or that waits for its next attempt", () => {
    stateAfter(started, retry("pay", 2, 0), stuckAt("pay"))
      .when(skip)
      .then("step.skipped pay", "run.resumed operator");
    stateAfter(started, retry("pay", 1, minute))
      .when(skip)
      .then("step.skipped pay");
    stateAfter(started, timer("t", minute)).when(skip).thenRefused();
    stateAfter(started, paused).when(skip).thenRefused();
  });

  test("skip passes over the attempt that waits, not the one before it", () => {
    const skipped = (...events: TimedEvent[]) =>
      decide(stateAfter(...events).state(), [{ command: skip, at: 0, strict: true }], 0);
    expect(skipped(started, retry("pay", 3, minute))).toMatchObject([{ type: "step.skipped", attempt: 4 }]);
    const planned = newEvent("step.scheduled", { node: "remind", attempt: 1 }, { waitMs: minute });
    expect(skipped(started, planned)).toMatchObject([{ type: "step.skipped", node: "remind", attempt: 1 }]);
  });

  test("skip passes over a step that rests in the middle, but not one that somebody is executing", () => {
    const begun = newEvent("step.started", { node: "ask", attempt: 1 });
    const state = stateAfter(started, begun).state();
    const idly = decide(state, [{ command: skip, at: 0, strict: true, isUnowned: true }], 0);
    expect(idly).toMatchObject([{ type: "step.skipped", node: "ask", attempt: 1 }]);
    stateAfter(started, begun).when(skip).thenRefused();
  });

  test("resumeAt sends a paused run with a chain to one of its steps, and refuses every other", () => {
    const chain = newEvent("run.started", {}, { steps: "chain" });
    const move: Command = { type: "resumeAt", step: "b" };
    stateAfter(chain, paused).when(move).then("run.moved", "run.resumed operator");
    stateAfter(chain).when(move).thenRefused();
    stateAfter(started, paused).when(move).thenRefused();
    stateAfter(paused).when(move).thenRefused();
  });

  test("cannot hold up a run that is being canceled", () => {
    stateAfter(
      started,
      newEvent("child.started", { node: "c" }, { runId: "r", workflow: "w" }),
      newEvent("run.cancel_requested", {}, {}),
    )
      .when(pause)
      .thenRefused();
  });

  test("of an owner's inbox that make no sense are passed over", () => {
    stateAfter(started)
      .whenDrained(
        [
          [0, resume],
          [0, skip],
          [0, pause],
          [0, pause],
          [0, resume],
        ],
        0,
      )
      .then("run.paused", "run.resumed operator");
  });
});

describe("cancel", () => {
  test("is asked for once", () => {
    stateAfter(started).when(cancel).then("run.cancel_requested");
    stateAfter(started, newEvent("run.cancel_requested", {}, {}))
      .when(cancel)
      .then();
  });

  test("wakes a paused run", () => {
    stateAfter(started, newEvent("run.paused", {}, { reason: "r" }))
      .when(cancel)
      .then("run.resumed operator", "run.cancel_requested");
  });

  test("of a canceled run is a no-op; nothing else touches a run that has ended", () => {
    const over = stateAfter(started, newEvent("run.canceled", {}, {}));
    over.when(cancel).then();
    for (const command of [pause, resume, skip, send("x")]) over.when(command).thenRefused();
    stateAfter(started, newEvent("run.completed", {}, {}))
      .when(cancel)
      .thenRefused();
    stateAfter(started, newEvent("run.failed", {}, { error: { name: "E", message: "m" } }))
      .when(resume)
      .thenRefused();
  });

  test("stops the clock: no timer fires after it", () => {
    stateAfter(started, timer("t", minute))
      .whenDrained([[0, cancel]], 10 * minute)
      .then("run.cancel_requested");
  });
});

describe("children", () => {
  const born = newEvent("child.started", { node: "c" }, { runId: "r", workflow: "w" });

  test("are heard once", () => {
    stateAfter(started, born)
      .when(child("c", null, "completed", 5))
      .then("child.completed c");
    stateAfter(started, born)
      .when(child("c", null, "failed"))
      .then("child.failed c");
    stateAfter(started, born)
      .when(child("c", null, "canceled"))
      .then("child.canceled c");
    stateAfter(started, born, newEvent("child.completed", { node: "c" }, {}, { output: "1" }))
      .when(child("c", null, "failed"))
      .then();
  });

  test("that nobody knows are passed over", () => {
    stateAfter(started)
      .when(child("unknown", null, "completed"))
      .then();
  });

  test("of a map are summed up in ranges, one event for all that came", () => {
    stateAfter(started, map("m", 10))
      .whenDrained(
        [3, 1, 2, 7].map((index) => [0, child("m", index, index === 7 ? "failed" : "completed")] as const),
        0,
      )
      .then('map.settled m {"completed":[[1,3]],"failed":[[7,7]]}');
  });

  test("of a map that are reported twice count once", () => {
    stateAfter(started, map("m", 3), newEvent("map.settled", { node: "m" }, { completed: [[0, 1]], failed: [] }))
      .whenDrained(
        [
          [0, child("m", 1, "completed")],
          [0, child("m", 2, "completed")],
          [0, child("m", 2, "failed")],
        ],
        0,
      )
      .then('map.settled m {"completed":[[2,2]],"failed":[]}');
  });

  test("that are open make a cancellation reach further", () => {
    expect(hasOpenChildren(stateAfter(started, born).state())).toBe(true);
    expect(hasOpenChildren(stateAfter(started, map("m", 2)).state())).toBe(true);
    expect(hasOpenChildren(stateAfter(started, map("m", 0)).state())).toBe(false);
    expect(hasOpenChildren(stateAfter(started, born, newEvent("child.completed", { node: "c" }, {})).state())).toBe(
      false,
    );
  });
});

test("deciding changes nothing: the same question has the same answer", () => {
  const state: RunState = fold(log([started, wait("w", ["go"], minute), timer("t", minute), signalEvent("other")]));
  const ask = () => decide(state, [{ command: send("go"), at: 0, strict: true }], minute);
  expect(ask()).toEqual(ask());
});

describe("nodes that others execute", () => {
  const dispatched = (node: string, attempt = 1): NewEvent =>
    newEvent("node.dispatched", { node, attempt }, { job: "Work" });
  const result = (node: string, attempt: number, retryMs: number | null = null, output: string | null = "5") => {
    const error = output === null ? { name: "Error", message: "no" } : null;
    return { node, attempt, output, error, retryMs, ms: 1 };
  };
  const ended = (...results: ReturnType<typeof result>[]): Command => ({ type: "nodes", results });

  test("are completed, or failed for now or for good, by what their runs tell", () => {
    stateAfter(started, dispatched("a"), dispatched("b"), dispatched("c"))
      .whenDrained([[0, ended(result("a", 1), result("b", 1, 50, null), result("c", 1, null, null))]], 0)
      .then("step.completed a", "step.failed b", "step.failed c");
  });

  test("are told of once, and only by the attempt that is awaited", () => {
    const once = [
      [0, ended(result("a", 1), result("a", 1))],
      [0, ended(result("a", 1))],
    ] as const;
    stateAfter(started, dispatched("a")).whenDrained(once, 0).then("step.completed a");
    stateAfter(started, dispatched("a", 2))
      .whenDrained([[0, ended(result("a", 1))]], 0)
      .then();
    stateAfter(started, newEvent("step.completed", { node: "a", attempt: 1 }))
      .whenDrained([[0, ended(result("a", 1))]], 0)
      .then();
    stateAfter(started)
      .whenDrained([[0, ended(result("a", 1))]], 0)
      .then();
  });

  test("cannot be skipped or given an output while they are executed", () => {
    stateAfter(started, dispatched("a")).when(skip).thenRefused();
  });
});
