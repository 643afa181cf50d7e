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

/** A log whose events happened at time 0, or at the given time. */
function log(events: readonly TimedEvent[]): StoredEvent[] {
  return events.map((timed, index) => {
    const [at, event] = Array.isArray(timed) ? (timed as readonly [number, NewEvent]) : [0, timed as NewEvent];
    return { ...event, seq: index + 1, at };
  });
}

/** `stateAfter(...events).when(command, at).then(...lines)` */
function stateAfter(...events: TimedEvent[]) {
  const state = () => fold(log(events));
  const judge = (received: readonly ReceivedCommand[], now: number) => ({
    // biome-ignore lint/suspicious/noThenProperty: the `then` of given, when, then; no code awaits it
    then: (...lines: string[]) => expect(decide(state(), received, now).map(formatEvent)).toEqual(lines),
    thenRefused: () => {
      const before = state();
      expect(() => decide(before, received, now)).toThrow(InvalidStateError);
      expect(before).toEqual(state());
    },
  });
  return {
    state,
    /** A client sends one command at this time. */
    when: (command: Command, at = 0) => judge([{ command, at, strict: true }], at),
    /** The owner drains its inbox at a later time. */
    whenDrained: (inbox: readonly (readonly [at: number, command: Command])[], now: number) =>
      judge(
        inbox.map(([at, command]) => ({ command, at, strict: false })),
        now,
      ),
    whenTimePasses: (now: number) => judge([], now),
  };
}

/** The event in one line, such as "step.skipped pay", with the important part of its data. */
function formatEvent(event: NewEvent): string {
  const details = {
    "wait.completed": () => JSON.stringify(dataOf(event, "wait.completed").signals),
    "run.resumed": () => dataOf(event, "run.resumed").by,
    "map.settled": () => JSON.stringify(dataOf(event, "map.settled")),
    "signal.received": () => dataOf(event, "signal.received").name,
    "run.failed": () => dataOf(event, "run.failed").error.name,
  }[event.type];
  return [event.type, event.node, details?.()].filter((part) => part !== null && part !== undefined).join(" ");
}

describe("signals", () => {
  test("are recorded when no wait is open", () => {
    stateAfter(started).when(send("go")).then("signal.received go");
  });

  test("complete an open wait in the same decision", () => {
    stateAfter(started, wait("w", ["go"]))
      .when(send("go"))
      .then("signal.received go", "wait.completed w [3]");
  });

  test("complete the oldest of several waits", () => {
    stateAfter(started, wait("w1", ["go"]), wait("w2", ["go"]))
      .whenDrained([[0, send("go")]], 0)
      .then("signal.received go", "wait.completed w1 [4]");
  });

  test("that are pending complete a wait that was opened later, the oldest signal first", () => {
    stateAfter(started, signalEvent("go", 1), signalEvent("go", 2), wait("w", ["go"]))
      .whenTimePasses(0)
      .then("wait.completed w [2]");
  });

  test("with a key that was already received are ignored", () => {
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

  test("that arrived before the deadline complete the wait, however late they are read", () => {
    stateAfter(started, wait("w", ["go"], minute))
      .whenDrained([[minute - 1, send("go")]], 10 * minute)
      .then("signal.received go", "wait.completed w [3]");
  });

  test("that arrived after the deadline do not complete the wait, also when the timeout was not recorded yet", () => {
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

  test("are numbered by their position in the log, which may differ from the end of the state", () => {
    const state = fold(log([started, wait("w", ["go"])]));
    const events = decide(state, [{ command: send("go"), at: 0, strict: true }], 0, 10);
    expect(dataOf(events[1] as NewEvent, "wait.completed").signals).toEqual([10]);
  });
});

describe("time", () => {
  test("fires due timers in the order of their due times", () => {
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

  test("fires no timer of a paused run, and fires due timers when the run is resumed", () => {
    const paused = stateAfter(started, timer("t", minute), newEvent("run.paused", {}, { reason: "r" }));
    paused.whenTimePasses(10 * minute).then();
    paused.when(resume, 10 * minute).then("run.resumed operator", "timer.fired t");
  });

  test("does not fire timers that were withdrawn or have fired", () => {
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

  test("wakes a handler that asked for another attempt", () => {
    const again = stateAfter(started, newEvent("run.reattempted", {}, { waitMs: minute, rewind: false }));
    again.whenTimePasses(minute - 1).then();
    again.whenTimePasses(minute).then("run.woken");
  });

  test("fails a run that exceeds its time limit, and nothing is decided after that", () => {
    stateAfter(newEvent("run.started", {}, { timeoutMs: minute }), timer("t", 2 * minute), wait("w", ["go"]))
      .whenDrained([[3 * minute, send("go")]], 4 * minute)
      .then("timer.fired t", "run.failed TimeoutError");
  });

  test("resumes a paused run at its recheck", () => {
    const paused = stateAfter(started, newEvent("run.paused", {}, { reason: "r", recheckMs: minute }));
    paused.whenTimePasses(minute - 1).then();
    paused.whenTimePasses(minute).then("run.resumed recheck");
  });
});

describe("pause and resume", () => {
  const paused = newEvent("run.paused", {}, { reason: "r" });
  const stuckAt = (node: string) => newEvent("run.paused", { node }, { reason: "r" });

  test("are accepted in turn, and refused twice in a row", () => {
    stateAfter(started).when(pause).then("run.paused");
    stateAfter(started, paused).when(pause).thenRefused();
    stateAfter(started, paused).when(resume).then("run.resumed operator");
    stateAfter(started).when(resume).thenRefused();
  });

  test("a signal that the pause waits for resumes the run", () => {
    const waiting = stateAfter(started, newEvent("run.paused", {}, { reason: "r", resumeOn: "fixed" }));
    waiting.when(send("other")).then("signal.received other");
    waiting.when(send("fixed")).then("signal.received fixed", "run.resumed signal");
  });

  test("a signal that arrived before the pause resumes the run", () => {
    stateAfter(started, signalEvent("fixed"), newEvent("run.paused", {}, { reason: "r", resumeOn: "fixed" }))
      .whenTimePasses(0)
      .then("run.resumed signal");
  });

  test("resume with an output completes the step that the run is stuck at", () => {
    const output: Command = { type: "resume", output: text("by hand") };
    stateAfter(started, retry("pay", 2, 0), stuckAt("pay"))
      .when(output)
      .then("step.completed pay", "run.resumed operator");
    stateAfter(started, newEvent("step.started", { node: "pay", attempt: 1 }), stuckAt("pay"))
      .when(output)
      .then("step.completed pay", "run.resumed operator");
    stateAfter(started, paused).when(output).thenRefused();
  });

  test("skip skips the step that the run is stuck at, or that waits for its next attempt", () => {
    stateAfter(started, retry("pay", 2, 0), stuckAt("pay"))
      .when(skip)
      .then("step.skipped pay", "run.resumed operator");
    stateAfter(started, retry("pay", 1, minute))
      .when(skip)
      .then("step.skipped pay");
    stateAfter(started, timer("t", minute)).when(skip).thenRefused();
    stateAfter(started, paused).when(skip).thenRefused();
  });

  test("skip does not hit a step whose next attempt is running already, although its start is not in the log", () => {
    const state = stateAfter(started, retry("pay", 1, 0)).state();
    const decideWhile = (executing: string) =>
      decide(state, [{ command: skip, at: 1, strict: false }], 1, state.seq + 1, null, (key) => key === executing);
    expect(decideWhile("pay")).toEqual([]);
    expect(decideWhile("ship")).toMatchObject([{ type: "step.skipped", node: "pay", attempt: 2 }]);
  });

  test("two operators skip one step once, and its result that arrives with them is the only one", () => {
    const skips = [skip, skip].map((command): ReceivedCommand => ({ command, at: 1, strict: false }));
    const decided = (state: RunState, commands: readonly ReceivedCommand[]) =>
      decide(state, commands, 1).map(({ type, node }) => `${type} ${node ?? ""}`);
    expect(decided(stateAfter(started, retry("pay", 1, minute)).state(), skips)).toEqual(["step.skipped pay"]);
    const two = stateAfter(started, retry("pay", 1, minute), retry("ship", 1, minute)).state();
    expect(decided(two, skips)).toEqual(["step.skipped pay", "step.skipped ship"]);
    const withOutput: ReceivedCommand = { command: { type: "resume", output: "1" }, at: 1, strict: false };
    const pausedAtStep = newEvent("run.paused", { node: "pay" }, { reason: "r" });
    const stuck = stateAfter(started, retry("pay", 1, minute), pausedAtStep).state();
    expect(decided(stuck, [withOutput, ...skips])).toEqual(["step.completed pay", "run.resumed "]);
  });

  test("skip skips the attempt that waits, not the one before it", () => {
    const skipped = (...events: TimedEvent[]) =>
      decide(stateAfter(...events).state(), [{ command: skip, at: 0, strict: true }], 0);
    expect(skipped(started, retry("pay", 3, minute))).toMatchObject([{ type: "step.skipped", attempt: 4 }]);
    const scheduled = newEvent("step.scheduled", { node: "remind", attempt: 1 }, { waitMs: minute });
    expect(skipped(started, scheduled)).toMatchObject([{ type: "step.skipped", node: "remind", attempt: 1 }]);
  });

  test("skip skips a started step of a run without an owner, and refuses while a worker executes the step", () => {
    const stepStarted = newEvent("step.started", { node: "ask", attempt: 1 });
    const state = stateAfter(started, stepStarted).state();
    const events = decide(state, [{ command: skip, at: 0, strict: true, isUnowned: true }], 0);
    expect(events).toMatchObject([{ type: "step.skipped", node: "ask", attempt: 1 }]);
    stateAfter(started, stepStarted).when(skip).thenRefused();
  });

  test("resumeAt moves a paused run with a chain to one of its steps, and refuses every other run", () => {
    const chain = newEvent("run.started", {}, { steps: "chain" });
    const move: Command = { type: "resumeAt", step: "b" };
    stateAfter(chain, paused).when(move).then("run.moved", "run.resumed operator");
    stateAfter(chain).when(move).thenRefused();
    stateAfter(started, paused).when(move).thenRefused();
    stateAfter(paused).when(move).thenRefused();
  });

  test("pause is refused for a run that is being canceled", () => {
    stateAfter(
      started,
      newEvent("child.started", { node: "c" }, { runId: "r", workflow: "w" }),
      newEvent("run.cancel_requested", {}, {}),
    )
      .when(pause)
      .thenRefused();
  });

  test("impossible commands in an owner's inbox are ignored", () => {
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
  test("is recorded once", () => {
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
    const canceled = stateAfter(started, newEvent("run.canceled", {}, {}));
    canceled.when(cancel).then();
    for (const command of [pause, resume, skip, send("x")]) canceled.when(command).thenRefused();
    stateAfter(started, newEvent("run.completed", {}, {}))
      .when(cancel)
      .thenRefused();
    stateAfter(started, newEvent("run.failed", {}, { error: { name: "E", message: "m" } }))
      .when(resume)
      .thenRefused();
  });

  test("keeps timers from firing", () => {
    stateAfter(started, timer("t", minute))
      .whenDrained([[0, cancel]], 10 * minute)
      .then("run.cancel_requested");
  });
});

describe("children", () => {
  const childStarted = newEvent("child.started", { node: "c" }, { runId: "r", workflow: "w" });

  test("are recorded as ended once", () => {
    stateAfter(started, childStarted)
      .when(child("c", null, "completed", 5))
      .then("child.completed c");
    stateAfter(started, childStarted)
      .when(child("c", null, "failed"))
      .then("child.failed c");
    stateAfter(started, childStarted)
      .when(child("c", null, "canceled"))
      .then("child.canceled c");
    stateAfter(started, childStarted, newEvent("child.completed", { node: "c" }, {}, { output: "1" }))
      .when(child("c", null, "failed"))
      .then();
  });

  test("that the log does not know are ignored", () => {
    stateAfter(started)
      .when(child("unknown", null, "completed"))
      .then();
  });

  test("of a map that have ended are recorded as ranges in one event", () => {
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

  test("that are open have to be canceled with the run", () => {
    expect(hasOpenChildren(stateAfter(started, childStarted).state())).toBe(true);
    expect(hasOpenChildren(stateAfter(started, map("m", 2)).state())).toBe(true);
    expect(hasOpenChildren(stateAfter(started, map("m", 0)).state())).toBe(false);
    const childCompleted = newEvent("child.completed", { node: "c" }, {});
    expect(hasOpenChildren(stateAfter(started, childStarted, childCompleted).state())).toBe(false);
  });
});

test("decide does not change the state: the same call returns the same events", () => {
  const state: RunState = fold(log([started, wait("w", ["go"], minute), timer("t", minute), signalEvent("other")]));
  const decideAgain = () => decide(state, [{ command: send("go"), at: 0, strict: true }], minute);
  expect(decideAgain()).toEqual(decideAgain());
});

describe("nodes that are executed by runs of their own", () => {
  const dispatched = (node: string, attempt = 1): NewEvent =>
    newEvent("node.dispatched", { node, attempt }, { job: "Work" });
  const result = (node: string, attempt: number, retryMs: number | null = null, output: string | null = "5") => {
    const error = output === null ? { name: "Error", message: "no" } : null;
    return { node, attempt, output, error, retryMs, ms: 1 };
  };
  const ended = (...results: ReturnType<typeof result>[]): Command => ({ type: "nodes", results });

  test("are completed, or have failed with or without a retry, as their runs report", () => {
    stateAfter(started, dispatched("a"), dispatched("b"), dispatched("c"))
      .whenDrained([[0, ended(result("a", 1), result("b", 1, 50, null), result("c", 1, null, null))]], 0)
      .then("step.completed a", "step.failed b", "step.failed c");
  });

  test("are recorded as ended once, and only by the attempt that is awaited", () => {
    const reports = [
      [0, ended(result("a", 1), result("a", 1))],
      [0, ended(result("a", 1))],
    ] as const;
    stateAfter(started, dispatched("a")).whenDrained(reports, 0).then("step.completed a");
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

  test("cannot be skipped while they are executed", () => {
    stateAfter(started, dispatched("a")).when(skip).thenRefused();
  });
});
