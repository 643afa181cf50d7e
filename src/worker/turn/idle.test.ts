import { describe, expect, test } from "vitest";
import { type IdleView, type Move, nextMove } from "./idle.js";

const nothing: IdleView = {
  isLeaving: false,
  isBusy: false,
  holdsCalls: false,
  isWriting: false,
  isPaused: false,
  isCanceled: false,
  isExpired: false,
  isDelivering: false,
  hasCalledCode: false,
  mustSettleJobs: false,
  isSettlingJobs: false,
  isCutShort: false,
  hasWorkForCode: false,
  isWaiting: false,
  isWorthLingering: false,
  hasSignalAtHand: false,
};

type Facts = readonly (keyof IdleView)[];

/** The facts that hold, beside whatever else comes up behind them in this table. */
const rows: readonly (readonly [move: Move, facts: Facts, not?: Facts])[] = [
  ["nothing", ["isLeaving"]],
  ["watch", ["isBusy"]],
  ["write", ["holdsCalls"]],
  ["nothing", ["isWriting"]],
  ["cancel", ["isCanceled"], ["isPaused"]],
  ["expire", ["isExpired"], ["isPaused", "isDelivering"]],
  ["expire", ["isExpired"], ["isPaused", "hasCalledCode"]],
  ["settle jobs", ["isPaused", "mustSettleJobs"]],
  ["nothing", ["isSettlingJobs", "isDelivering"]],
  ["park", ["isPaused"]],
  ["park", ["isCutShort"]],
  ["call code", ["hasWorkForCode"], ["hasCalledCode"]],
  ["park", [], ["hasCalledCode", "hasWorkForCode"]],
  ["nothing", ["hasCalledCode", "isDelivering"]],
  ["write", ["hasCalledCode"], ["isWaiting"]],
  ["linger", ["hasCalledCode", "isWaiting", "isWorthLingering"]],
  ["write", ["hasCalledCode", "isWaiting", "hasSignalAtHand"]],
  ["park waiting", ["hasCalledCode", "isWaiting"]],
];

const viewOf = (facts: Facts): IdleView =>
  Object.assign({ ...nothing }, Object.fromEntries(facts.map((fact) => [fact, true])));

describe("what a turn does when it is idle", () => {
  test.each(rows.map(([move, facts]) => ({ move, facts })))("$move: $facts", ({ move, facts }) => {
    expect(nextMove(viewOf(facts))).toBe(move);
  });

  // Each row stands before those that follow it: their facts change nothing, as long as its own conditions hold.
  const pairs = rows.flatMap((row, index) => rows.slice(index + 1).map((later) => [row, later] as const));
  test.each(pairs)("%s comes before %s", (row, later) => {
    const [move, facts, not = []] = row;
    const [, laterFacts] = later;
    const both = [...facts, ...laterFacts].filter((fact) => !not.includes(fact));
    expect(nextMove(viewOf(both))).toBe(move);
  });

  test("a paused run is neither canceled nor expired before it is resumed", () => {
    expect(nextMove(viewOf(["isPaused", "isCanceled", "isExpired", "hasCalledCode"]))).toBe("park");
  });

  test("answers that are on their way reach the code before its run is ended for its time limit", () => {
    expect(nextMove(viewOf(["isExpired", "hasCalledCode", "isDelivering"]))).toBe("nothing");
  });
});
