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

/** The action for each set of facts, by priority: facts of a later row do not change it, except those in `excluded`. */
const rows: readonly (readonly [action: IdleAction, facts: Facts, excluded?: Facts])[] = [
  ["nothing", ["isEndingTurn"]],
  ["watch timers", ["isBusy"]],
  ["write", ["hasGatedCalls"]],
  ["nothing", ["isWriting"]],
  ["cancel", ["isCanceled"], ["isPaused"]],
  ["expire", ["isExpired"], ["isPaused", "isDelivering"]],
  ["expire", ["isExpired"], ["isPaused", "hasCalledCode"]],
  ["record ended jobs", ["isPaused", "mustRecordEndedJobs"]],
  ["nothing", ["isRecordingEndedJobs", "isDelivering"]],
  ["park", ["isPaused"]],
  ["park", ["isInterrupted"]],
  ["call code", ["hasWorkForCode"], ["hasCalledCode"]],
  ["park", [], ["hasCalledCode", "hasWorkForCode"]],
  ["nothing", ["hasCalledCode", "isDelivering"]],
  ["write", ["hasCalledCode"], ["isWaiting"]],
  ["delay park", ["hasCalledCode", "isWaiting", "shouldDelayPark"]],
  ["write", ["hasCalledCode", "isWaiting", "hasMatchingSignal"]],
  ["park or pause again", ["hasCalledCode", "isWaiting"]],
];

const viewOf = (facts: Facts): IdleView =>
  Object.assign({ ...emptyView }, Object.fromEntries(facts.map((fact) => [fact, true])));

describe("what a turn does when it is idle", () => {
  test.each(rows.map(([action, facts]) => ({ action, facts })))("$action when $facts", ({ action, facts }) => {
    expect(nextIdleAction(viewOf(facts))).toBe(action);
  });

  const pairs = rows.flatMap((row, index) => rows.slice(index + 1).map((later) => [row, later] as const));
  test.each(pairs)("%s takes precedence over %s", (row, later) => {
    const [action, facts, excluded = []] = row;
    const [, laterFacts] = later;
    const both = [...facts, ...laterFacts].filter((fact) => !excluded.includes(fact));
    expect(nextIdleAction(viewOf(both))).toBe(action);
  });

  test("a paused run is neither canceled nor expired before it is resumed", () => {
    expect(nextIdleAction(viewOf(["isPaused", "isCanceled", "isExpired", "hasCalledCode"]))).toBe("park");
  });

  test("results that are being delivered reach the code before a timed-out run is ended", () => {
    expect(nextIdleAction(viewOf(["isExpired", "hasCalledCode", "isDelivering"]))).toBe("nothing");
  });
});
