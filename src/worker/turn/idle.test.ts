import { describe, expect, test } from "vitest";
import { type IdleAction, type IdleView, nextIdleAction } from "./idle.js";

const emptyView: IdleView = {
  isEndingTurn: false,
  isBusy: false,
  hasGatedCalls: false,
  isWriting: false,
  isPaused: false,
  isCanceled: false,
  isExpired: false,
  isDelivering: false,
  hasCalledCode: false,
  mustRecordEndedJobs: false,
  isRecordingEndedJobs: false,
  isInterrupted: false,
  hasWorkForCode: false,
  isWaiting: false,
  shouldDelayPark: false,
  hasMatchingSignal: false,
};

type Facts = readonly (keyof IdleView)[];

/** The facts that hold, beside whatever else comes up behind them in this table. */
const rows: readonly (readonly [move: IdleAction, facts: Facts, not?: Facts])[] = [
  ["nothing", ["isEndingTurn"]],
  ["watch", ["isBusy"]],
  ["write", ["hasGatedCalls"]],
  ["nothing", ["isWriting"]],
  ["cancel", ["isCanceled"], ["isPaused"]],
  ["expire", ["isExpired"], ["isPaused", "isDelivering"]],
  ["expire", ["isExpired"], ["isPaused", "hasCalledCode"]],
  ["settle jobs", ["isPaused", "mustRecordEndedJobs"]],
  ["nothing", ["isRecordingEndedJobs", "isDelivering"]],
  ["park", ["isPaused"]],
  ["park", ["isInterrupted"]],
  ["call code", ["hasWorkForCode"], ["hasCalledCode"]],
  ["park", [], ["hasCalledCode", "hasWorkForCode"]],
  ["nothing", ["hasCalledCode", "isDelivering"]],
  ["write", ["hasCalledCode"], ["isWaiting"]],
  ["linger", ["hasCalledCode", "isWaiting", "shouldDelayPark"]],
  ["write", ["hasCalledCode", "isWaiting", "hasMatchingSignal"]],
  ["park waiting", ["hasCalledCode", "isWaiting"]],
];

const viewOf = (facts: Facts): IdleView =>
  Object.assign({ ...emptyView }, Object.fromEntries(facts.map((fact) => [fact, true])));

describe("what a turn does when it is idle", () => {
  test.each(rows.map(([move, facts]) => ({ move, facts })))("$move: $facts", ({ move, facts }) => {
    expect(nextIdleAction(viewOf(facts))).toBe(move);
  });

  // Each row stands before those that follow it: their facts change nothing, as long as its own conditions hold.
  const pairs = rows.flatMap((row, index) => rows.slice(index + 1).map((later) => [row, later] as const));
  test.each(pairs)("%s comes before %s", (row, later) => {
    const [move, facts, not = []] = row;
    const [, laterFacts] = later;
    const both = [...facts, ...laterFacts].filter((fact) => !not.includes(fact));
    expect(nextIdleAction(viewOf(both))).toBe(move);
  });

  test("a paused run is neither canceled nor expired before it is resumed", () => {
    expect(nextIdleAction(viewOf(["isPaused", "isCanceled", "isExpired", "hasCalledCode"]))).toBe("park");
  });

  test("answers that are on their way reach the code before its run is ended for its time limit", () => {
    expect(nextIdleAction(viewOf(["isExpired", "hasCalledCode", "isDelivering"]))).toBe("nothing");
  });
});
