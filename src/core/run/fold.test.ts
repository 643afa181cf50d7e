import { describe, expect, test } from "vitest";
import { type NewEvent, newEvent, type StoredEvent } from "./event.js";
import { evolve, fold } from "./fold.js";
import { statusOf } from "./state.js";
import { currentStep, nextDueAt, waitingFor } from "./waiting.js";

const started = newEvent("run.started", {});
const failure = { name: "E", message: "m" };
const completed = (node: string, output = "1") =>
  newEvent("step.completed", { node, attempt: 1, outcome: "success" }, {}, { output });
const retry = (node: string, attempt: number, retryMs: number, transient?: true) =>
  newEvent(
    "step.failed",
    { node, attempt },
    { error: failure, retryMs, ...(transient === undefined ? {} : { transient }) },
  );

/** A log whose events happened one second after another, the first at 1,000. */
function log(...events: NewEvent[]): StoredEvent[] {
  return events.map((event, index) => ({ ...event, seq: index + 1, at: (index + 1) * 1_000 }));
}
const stateAfter = (...events: NewEvent[]) => fold(log(...events));
const op = (state: ReturnType<typeof fold>, key: string) => state.ops.get(key);

describe("the log", () => {
  test("has no gaps, no repeats and no other order", () => {
    const [first, second, third] = log(started, completed("a"), completed("b")) as [
      StoredEvent,
      StoredEvent,
      StoredEvent,
    ];
    expect(() => fold([first, third])).toThrow(/gap/);
    expect(() => fold([first, first])).toThrow(/gap/);
    expect(() => fold([second])).toThrow(/gap/);
    expect(fold([first, second, third]).seq).toBe(3);
  });

  test("may be folded in parts", () => {
    const events = log(started, completed("a"), newEvent("timer.started", { node: "t" }, { ms: 5 }));
    const parts = fold(events.slice(0, 2));
    expect(fold(events.slice(2), parts)).toEqual(fold(events));
  });

  test("may contain events that a newer version has written", () => {
    const state = stateAfter(
      started,
      { type: "future.thing", node: "x", attempt: null, outcome: null, data: "not even json" },
      completed("a"),
    );
    expect(state.seq).toBe(3);
    expect(op(state, "a")).toMatchObject({ kind: "step", phase: "completed" });
  });

  test("with data that cannot be read is refused", () => {
    expect(() => stateAfter(started, { ...newEvent("timer.started", { node: "t" }, { ms: 1 }), data: "{" })).toThrow();
  });
});

describe("a run's status", () => {
  test("follows its events", () => {
    expect(statusOf(stateAfter())).toBe("pending");
    expect(statusOf(stateAfter(started))).toBe("waiting");
    expect(statusOf(stateAfter(started, newEvent("run.paused", {}, { reason: "r" })))).toBe("paused");
    expect(statusOf(stateAfter(newEvent("run.paused", {}, { reason: "r" })))).toBe("paused");
    expect(
      statusOf(
        stateAfter(
          started,
          newEvent("run.paused", {}, { reason: "r" }),
          newEvent("run.resumed", {}, { by: "operator" }),
        ),
      ),
    ).toBe("waiting");
    expect(statusOf(stateAfter(started, newEvent("run.completed", {}, {})))).toBe("completed");
    expect(statusOf(stateAfter(started, newEvent("run.failed", {}, { error: failure })))).toBe("failed");
    expect(statusOf(stateAfter(started, newEvent("run.canceled", {}, {})))).toBe("canceled");
  });

  test("has one ending: the first terminal event counts", () => {
    const state = stateAfter(
      started,
      newEvent("run.completed", {}, {}),
      newEvent("run.failed", {}, { error: failure }),
    );
    expect(state.ending).toMatchObject({ status: "completed", at: 2_000 });
  });
});

describe("a step", () => {
  test("has one result: the first stands", () => {
    const state = stateAfter(
      started,
      completed("a", '"first"'),
      completed("a", '"second"'),
      newEvent("step.failed", { node: "a", attempt: 2 }, { error: failure }),
    );
    expect(op(state, "a")).toMatchObject({ phase: "completed", data: expect.stringContaining("first") });
    expect(state.answeredCalls.map(({ key }) => key)).toEqual(["a"]);
  });

  test.each([
    ["another start", newEvent("step.started", { node: "a", attempt: 2 })],
    ["a late failure", retry("a", 2, 1_000)],
    ["a late reattempt", newEvent("step.reattempted", { node: "a", attempt: 2 }, { waitMs: 5 })],
    ["a late failure for good", newEvent("step.failed", { node: "a", attempt: 2 }, { error: failure })],
    ["a late skip", newEvent("step.skipped", { node: "a", attempt: 2 })],
  ])("that has ended is not changed by %s", (_what, late) => {
    for (const end of [
      completed("a"),
      newEvent("step.skipped", { node: "a", attempt: 1 }),
      newEvent("step.failed", { node: "a", attempt: 1 }, { error: failure }),
    ]) {
      const before = op(stateAfter(started, end), "a");
      const state = stateAfter(started, end, late);
      expect(op(state, "a")).toMatchObject({ kind: "step", phase: (before as { phase: string }).phase, dueAt: null });
      expect(nextDueAt(state)).toBeNull();
      expect(state.answeredCalls).toHaveLength(1);
    }
  });

  test("counts all failures, and those that count against the retry policy", () => {
    const state = stateAfter(started, retry("a", 1, 100), retry("a", 2, 100, true), retry("a", 3, 500));
    expect(op(state, "a")).toMatchObject({
      attempt: 3,
      countedFailures: 2,
      totalFailures: 3,
      phase: "awaiting_attempt",
      dueAt: 4_500,
    });
  });

  test("that has paused the run because its worker died may run again once the run is resumed", () => {
    const events = [
      started,
      newEvent("step.started", { node: "a", attempt: 1 }),
      newEvent("run.recovered", {}, { deliveries: 2 }),
      newEvent("run.paused", { node: "a" }, { reason: "r" }),
    ];
    expect(op(stateAfter(...events), "a")).toMatchObject({ phase: "started" });
    expect(op(stateAfter(...events, newEvent("run.resumed", {}, { by: "operator" })), "a")).toMatchObject({
      phase: "awaiting_attempt",
      dueAt: 5_000,
    });
  });

  test("of a function that was lost without a recovery may run again once the run is resumed", () => {
    const events = [
      newEvent("step.started", { node: "a", attempt: 1 }),
      newEvent("run.paused", { node: "a" }, { reason: "r" }),
      newEvent("run.resumed", {}, { by: "operator" }),
    ];
    expect(op(stateAfter(started, ...events), "a")).toMatchObject({ phase: "awaiting_attempt", dueAt: 4_000 });
  });

  test("that waits for its job when the run is paused keeps waiting once the run is resumed", () => {
    const resumed = newEvent("run.resumed", {}, { by: "operator" });
    const paused = newEvent("run.paused", { node: "a" }, { reason: "r" });
    const inClass = newEvent("step.started", { node: "a", attempt: 1 });
    const classStarted = newEvent("run.started", {}, { steps: "chain" });
    expect(op(stateAfter(classStarted, inClass, paused, resumed), "a")).toMatchObject({ phase: "started", attempt: 1 });
    const inGraph = newEvent("node.dispatched", { node: "a", attempt: 1 }, { job: "J" });
    expect(op(stateAfter(started, inGraph, paused, resumed), "a")).toMatchObject({ phase: "started", job: "J" });
  });

  test("is forgotten by a rewind, but its attempts keep counting", () => {
    const state = stateAfter(
      started,
      retry("a", 1, 0),
      completed("b"),
      newEvent("run.reattempted", {}, { waitMs: 10, rewind: true }),
    );
    expect(state.ops.size).toBe(0);
    expect(state.answeredCalls).toEqual([]);
    expect(state.generation).toBe(1);
    // The second attempt was scheduled, although it never started.
    expect(state.attemptsBeforeRewind?.get("a")).toBe(2);
  });
});

describe("results of calls", () => {
  test("are in the order of the log, not of the calls", () => {
    const state = stateAfter(
      started,
      newEvent("timer.started", { node: "t" }, { ms: 1 }),
      newEvent("wait.started", { node: "w" }, { names: ["go"], mode: "any" }),
      completed("b"),
      newEvent("signal.received", {}, { name: "go" }, { payload: "1" }),
      newEvent("wait.completed", { node: "w" }, { signals: [5] }),
      newEvent("timer.fired", { node: "t" }),
      completed("a"),
      newEvent("branch.chosen", { node: "x" }, { choice: "left" }),
    );
    expect(state.answeredCalls.map(({ key, at }) => ({ key, at }))).toEqual([
      { key: "b", at: 4_000 },
      { key: "w", at: 6_000 },
      { key: "t", at: 7_000 },
      { key: "a", at: 8_000 },
      { key: "x", at: 9_000 },
    ]);
  });

  test("give the code a reason to run, and events without a result do not", () => {
    const state = stateAfter(started);
    const initialVersion = state.wakeVersion;
    evolve(state, { ...newEvent("signal.received", {}, { name: "n" }, { payload: "1" }), seq: 2, at: 0 });
    evolve(state, {
      ...newEvent(
        "map.started",
        { node: "m" },
        { workflow: "c", count: 2, concurrency: 2, tolerate: 0, spawned: 2, released: 2 },
      ),
      seq: 3,
      at: 0,
    });
    evolve(state, { ...newEvent("map.settled", { node: "m" }, { completed: [[0, 0]], failed: [] }), seq: 4, at: 0 });
    expect(state.wakeVersion).toBe(initialVersion);
    evolve(state, { ...newEvent("map.settled", { node: "m" }, { completed: [[1, 1]], failed: [] }), seq: 5, at: 0 });
    expect(state.wakeVersion).toBe(initialVersion + 1);
  });
});

describe("signals", () => {
  const received = (name: string, key?: string) =>
    newEvent("signal.received", {}, key === undefined ? { name } : { name, key }, { payload: '"p"' });

  test("are pending in their order until they are consumed, once", () => {
    const state = stateAfter(
      started,
      received("a"),
      received("b", "k"),
      received("a"),
      newEvent("wait.started", { node: "w" }, { names: ["a"], mode: "any" }),
      newEvent("wait.completed", { node: "w" }, { signals: [2] }),
    );
    expect(state.pendingSignals.map(({ seq, name }) => [seq, name])).toEqual([
      [3, "b"],
      [4, "a"],
    ]);
    expect([...(state.signalKeys ?? [])]).toEqual(["k"]);
    expect(() =>
      stateAfter(
        started,
        received("a"),
        newEvent("wait.started", { node: "w" }, { names: ["a"], mode: "any" }),
        newEvent("wait.completed", { node: "w" }, { signals: [2] }),
        newEvent("wait.completed", { node: "w" }, { signals: [2] }),
      ),
    ).toThrow(/never received/);
  });

  test("of a wait that lost a race are pending again, in their former position", () => {
    const state = stateAfter(
      started,
      received("a"),
      received("b"),
      newEvent("wait.started", { node: "w" }, { names: ["a"], mode: "any" }),
      newEvent("wait.completed", { node: "w" }, { signals: [2] }),
      newEvent("wait.withdrawn", { node: "w" }),
    );
    expect(state.pendingSignals.map(({ seq }) => seq)).toEqual([2, 3]);
  });
});

describe("a map", () => {
  const mapOf = (count: number, tolerate = 0) =>
    newEvent(
      "map.started",
      { node: "m" },
      { workflow: "c", count, concurrency: count, tolerate, spawned: count, released: count },
    );
  const settled = (completedRanges: [number, number][], failedRanges: [number, number][] = []) =>
    newEvent("map.settled", { node: "m" }, { completed: completedRanges, failed: failedRanges });

  test("of no items is settled at once", () => {
    expect(stateAfter(started, mapOf(0)).answeredCalls.map(({ key, at }) => ({ key, at }))).toEqual([
      { key: "m", at: 2_000 },
    ]);
  });

  test("is settled when all children have ended, and fails as soon as too many have failed", () => {
    expect(op(stateAfter(started, mapOf(4), settled([[0, 2]])), "m")).toMatchObject({ phase: "open", endedCount: 3 });
    expect(op(stateAfter(started, mapOf(4), settled([[0, 2]]), settled([[3, 3]])), "m")).toMatchObject({
      phase: "settled",
    });
    expect(op(stateAfter(started, mapOf(4, 1), settled([], [[0, 0]])), "m")).toMatchObject({ phase: "open" });
    const failed = stateAfter(started, mapOf(4, 1), settled([], [[0, 1]]), settled([[2, 3]]));
    expect(op(failed, "m")).toMatchObject({ phase: "failed", failedIndexes: [0, 1] });
    expect(failed.answeredCalls).toHaveLength(1);
  });

  test("counts a child once, however often it is reported", () => {
    expect(op(stateAfter(started, mapOf(3), settled([[0, 1]]), settled([[1, 1]])), "m")).toMatchObject({
      endedCount: 2,
      phase: "open",
    });
    expect(op(stateAfter(started, mapOf(3, 1), settled([], [[0, 0]]), settled([], [[0, 0]])), "m")).toMatchObject({
      endedCount: 1,
      phase: "open",
    });
  });
});

describe("what a run waits for", () => {
  test("is described by the names that the user's code has given", () => {
    const state = stateAfter(
      started,
      newEvent("timer.started", { node: "nap" }, { ms: 10 }),
      newEvent("wait.started", { node: "signal:go" }, { names: ["go"], mode: "any", timeoutMs: 50_000 }),
      retry("pay", 1, 700),
      newEvent("child.started", { node: "c" }, { runId: "r", workflow: "w" }),
      newEvent("run.reattempted", {}, { waitMs: 5, rewind: false }),
    );
    expect(waitingFor(state)).toEqual([
      { kind: "reattempt" },
      { kind: "sleep", name: "nap" },
      { kind: "signal", names: ["go"] },
      { kind: "retry", step: "pay", attempt: 2 },
      { kind: "child", name: "c", runId: "r", workflow: "w" },
    ]);
  });

  test("is due at the earliest of its times", () => {
    const timers = [
      started,
      newEvent("timer.started", { node: "a" }, { ms: 9_000 }),
      newEvent("timer.started", { node: "b" }, { until: 5_000 }),
      retry("s", 1, 100),
    ];
    expect(nextDueAt(stateAfter(...timers))).toBe(4_100);
    expect(nextDueAt(stateAfter(...timers), (key) => key === "a")).toBe(11_000);
    expect(
      nextDueAt(stateAfter(started, newEvent("wait.started", { node: "w" }, { names: ["x"], mode: "any" }))),
    ).toBeNull();
    expect(
      nextDueAt(
        stateAfter(
          newEvent("run.started", {}, { timeoutMs: 50 }),
          newEvent("timer.started", { node: "a" }, { ms: 10 }),
        ),
      ),
    ).toBe(1_050);
  });

  test("is due only at the recheck while the run is paused", () => {
    expect(
      nextDueAt(
        stateAfter(
          started,
          newEvent("timer.started", { node: "a" }, { ms: 10 }),
          newEvent("run.paused", {}, { reason: "r" }),
        ),
      ),
    ).toBeNull();
    expect(nextDueAt(stateAfter(started, newEvent("run.paused", {}, { reason: "r", recheckMs: 500 })))).toBe(2_500);
  });
});

describe("a declared step", () => {
  const chain = newEvent("run.started", {}, { steps: "chain" });
  const scheduled = (node: string, waitMs: number, attempt = 1) =>
    newEvent("step.scheduled", { node, attempt }, { waitMs });
  const reattempted = (node: string, attempt: number, data: { waitMs: number; rewind?: true; cursorUnmoved?: true }) =>
    newEvent("step.reattempted", { node, attempt, outcome: "continued" }, data);

  test("that is scheduled waits for its start time, and has no attempt yet", () => {
    const state = stateAfter(chain, scheduled("a", 5_000));
    expect(op(state, "a")).toMatchObject({ phase: "awaiting_attempt", isScheduled: true, attempt: 0, dueAt: 7_000 });
    expect(nextDueAt(state)).toBe(7_000);
    expect(waitingFor(state)).toEqual([{ kind: "step", step: "a", attempt: 1 }]);
    expect(currentStep(state)).toEqual({ name: "a", attempt: 1 });
  });

  test("counts failures in a row; an attempt that is no failure and an operator's resume reset the count", () => {
    const failed = [retry("a", 1, 0), retry("a", 2, 0)];
    expect(op(stateAfter(chain, ...failed), "a")).toMatchObject({ consecutiveFailures: 2, countedFailures: 2 });
    expect(op(stateAfter(chain, ...failed, retry("a", 3, 0, true)), "a")).toMatchObject({ consecutiveFailures: 2 });
    expect(op(stateAfter(chain, ...failed, reattempted("a", 3, { waitMs: 0 })), "a")).toMatchObject({
      consecutiveFailures: 0,
    });
    const paused = newEvent("run.paused", { node: "a" }, { reason: "r" });
    const resumedBy = (by: "operator" | "recheck") => newEvent("run.resumed", {}, { by });
    expect(op(stateAfter(chain, ...failed, paused, resumedBy("operator")), "a")).toMatchObject({
      consecutiveFailures: 0,
    });
    expect(op(stateAfter(chain, ...failed, paused, resumedBy("recheck")), "a")).toMatchObject({
      consecutiveFailures: 2,
    });
  });

  test("counts continuations that did not move the cursor", () => {
    const unmoved = { waitMs: 0, cursorUnmoved: true } as const;
    const twice = stateAfter(chain, reattempted("a", 1, unmoved), reattempted("a", 2, unmoved));
    expect(op(twice, "a")).toMatchObject({ continuationsWithoutProgress: 2 });
    expect(op(fold(log(chain, reattempted("a", 1, unmoved), reattempted("a", 2, { waitMs: 0 }))), "a")).toMatchObject({
      consecutiveTransientFailures: 0,
      discardedJobRuns: 0,
      pauseCause: null,
      continuationsWithoutProgress: 0,
    });
  });

  test("that starts over forgets the calls of its body, and no others", () => {
    const state = stateAfter(
      chain,
      completed("first"),
      completed("first/x"),
      completed("a/x"),
      newEvent("timer.started", { node: "a/t" }, { ms: 5 }),
      reattempted("a", 1, { waitMs: 0, rewind: true }),
    );
    expect([...state.ops.keys()]).toEqual(["first", "first/x", "a"]);
    expect(op(state, "a")).toMatchObject({ phase: "awaiting_attempt", isRewound: true, attempt: 1 });
    expect(state.attemptsBeforeRewind?.get("a/x")).toBe(1);
  });

  test("that had started when its worker died is abandoned, until its next attempt", () => {
    const first = newEvent("step.started", { node: "a", attempt: 1 });
    const recovered = newEvent("run.recovered", {}, { deliveries: 2 });
    expect(op(stateAfter(chain, first), "a")).toMatchObject({ phase: "started", isAbandoned: false });
    expect(op(stateAfter(chain, first, recovered), "a")).toMatchObject({ phase: "started", isAbandoned: true });
    const second = newEvent("step.started", { node: "a", attempt: 2 });
    expect(op(stateAfter(chain, first, recovered, second), "a")).toMatchObject({ isAbandoned: false, attempt: 2 });
  });

  test("that an operator moves the run to is where it continues; only the number of attempts is kept", () => {
    const state = stateAfter(chain, completed("a"), completed("b"), newEvent("run.moved", {}, { to: "a" }));
    expect(state).toMatchObject({ movedToStep: "a", generation: 1 });
    expect([state.ops.size, state.answeredCalls.length]).toEqual([0, 0]);
    expect(state.attemptsBeforeRewind).toEqual(
      new Map([
        ["a", 1],
        ["b", 1],
      ]),
    );
  });

  test("is the current one until it has ended; parts of it are not steps of the chain", () => {
    expect(currentStep(stateAfter(chain, completed("a")))).toBeNull();
    const stepStarted = newEvent("step.started", { node: "b", attempt: 1 });
    expect(currentStep(stateAfter(chain, completed("a"), retry("b/x", 1, 5), stepStarted))).toEqual({
      name: "b",
      attempt: 1,
    });
    expect(currentStep(stateAfter(started, stepStarted))).toBeNull();
  });
});
