import { describe, expect, test } from "vitest";
import { decide } from "./decide.js";
import { dataOf, type NewEvent, newEvent } from "./event.js";
import { fold } from "./fold.js";
import type { Command } from "./stored-schema.js";

const started = newEvent("run.started", {});
const stateAfter = (...events: NewEvent[]) => fold(events.map((event, index) => ({ ...event, seq: index + 1, at: 0 })));
const receivedNow = (command: Command) => [{ command, at: 0, strict: false }];

describe("a blocked event loop", () => {
  const blocked = (worker: string, step: string | null, by: string | null = null): Command => ({
    type: "blocked",
    worker,
    session: `${worker}/1`,
    step,
    by,
  });
  const blockedEvent = (worker: string, node?: string, more: { by?: string; suspected?: true } = {}) =>
    newEvent("run.blocked", node === undefined ? {} : { node }, { worker, session: `${worker}/1`, ...more });
  const types = (events: readonly NewEvent[]) => events.map(({ type }) => type);

  test("is recorded with the step that blocked it; the second time the run is paused, with both workers in the reason", () => {
    expect(decide(stateAfter(started), receivedNow(blocked("w1", "spin")), 0)).toEqual([blockedEvent("w1", "spin")]);
    const events = decide(stateAfter(started, blockedEvent("w1", "spin")), receivedNow(blocked("w2", "spin")), 0);
    expect(types(events)).toEqual(["run.blocked", "run.paused"]);
    const { reason, error } = dataOf(events[1] as NewEvent, "run.paused");
    expect(reason).toMatch(/Step "spin" blocked the event loop of worker "w1" and then of worker "w2"/);
    expect(error).toMatchObject({ name: "QuarantineError", code: "QUARANTINED" });
    expect(events[1]?.node).toBe("spin");
  });

  test("does not count against a run when the code of another run has blocked it", () => {
    const state = stateAfter(
      started,
      blockedEvent("w1", undefined, { by: "other" }),
      blockedEvent("w2", undefined, { by: "other" }),
    );
    expect(state.blockedWorkers).toBeNull();
    expect(types(decide(state, receivedNow(blocked("w3", null, "other")), 0))).toEqual(["run.blocked"]);
  });

  test("counts once, however often it is reported", () => {
    expect(decide(stateAfter(started, blockedEvent("w1", "spin")), receivedNow(blocked("w1", "spin")), 0)).toEqual([]);
  });

  test("counts against a suspected run only when the run is identified the next time", () => {
    const suspected = stateAfter(started, blockedEvent("w1", undefined, { suspected: true }));
    expect(types(decide(suspected, receivedNow(blocked("w2", null)), 0))).toEqual(["run.blocked"]);
    expect(types(decide(suspected, receivedNow(blocked("w2", "")), 0))).toEqual(["run.blocked", "run.paused"]);
  });

  test("counts against the run, whichever part of its code has blocked it", () => {
    expect(types(decide(stateAfter(started, blockedEvent("w1")), receivedNow(blocked("w2", "spin")), 0))).toContain(
      "run.paused",
    );
    expect(types(decide(stateAfter(started, blockedEvent("w1", "spin")), receivedNow(blocked("w2", "")), 0))).toContain(
      "run.paused",
    );
  });

  test("is forgotten when the step completes, and when an operator resumes the run", () => {
    const completed = newEvent("step.completed", { node: "spin", attempt: 1 });
    expect(
      types(decide(stateAfter(started, blockedEvent("w1", "spin"), completed), receivedNow(blocked("w2", "spin")), 0)),
    ).toEqual(["run.blocked"]);
    const other = newEvent("step.completed", { node: "other", attempt: 1 });
    expect(
      types(decide(stateAfter(started, blockedEvent("w1", "spin"), other), receivedNow(blocked("w2", "spin")), 0)),
    ).toContain("run.paused");
    const resumed = newEvent("run.resumed", {}, { by: "operator" });
    expect(stateAfter(started, blockedEvent("w1", "spin"), resumed).blockedWorkers).toBeNull();
  });
});
