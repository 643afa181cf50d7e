import type { HistoryEvent, RunStatus } from "pawl";
import { expect, test } from "vitest";
import type { Effect } from "./ledger.js";
import { stepNames } from "./order.js";
import type { RunProgress } from "./progress.js";
import { type Account, rowsOf, tableOf } from "./report.js";

const killedPid = 1;
const secondPid = 2;
const fine = { runs: 1, events: 0, differences: [], found: 0, unchecked: 0 };

/** One order: worker 1 executes two steps and dies in the middle of the third, worker 2 executes the rest. */
const account: Account = {
  runs: [runOf(["reserve", "charge", "RECOVERED", "pack", "label", "ship", "notify"])],
  effects: [
    ...["reserve", "charge", "pack"].map((step) => effectOf(step, killedPid)),
    ...["pack", "label", "ship", "notify"].map((step) => effectOf(step, secondPid)),
  ],
  verification: fine,
  killedPid,
  secondPid,
};

test("an order whose step was in flight when its worker was killed is correct", () => {
  expect(wrongIn(account)).toEqual([]);
  expect(tableOf(rowsOf(account))).toContain("  ✓    again, because in flight at the kill         1   allowed");
});

test("a repeated effect of a step that was already recorded is reported", () => {
  const effects = [...account.effects, effectOf("charge", secondPid)];
  expect(wrongIn({ ...account, effects })).toEqual(["effects in the ledger", "  again, although recorded"]);
});

test("an effect that the same worker caused twice is reported", () => {
  const effects = [...account.effects, effectOf("ship", secondPid)];
  expect(wrongIn({ ...account, effects })).toEqual(["effects in the ledger", "  again, although recorded"]);
});

test("a step that is recorded twice or never is reported", () => {
  const twice = runOf(["reserve", "charge", "RECOVERED", "pack", "pack", "label", "ship", "notify"]);
  expect(wrongIn({ ...account, runs: [twice] })).toEqual(["steps recorded exactly once"]);
  const never = runOf(["reserve", "charge", "RECOVERED", "pack", "label", "ship"]);
  expect(wrongIn({ ...account, runs: [never] })).toEqual(["steps recorded exactly once"]);
});

test("a recorded step without an effect is reported", () => {
  const effects = account.effects.filter(({ step }) => step !== "label");
  expect(wrongIn({ ...account, effects })).toEqual(["steps with an effect in the ledger", "effects in the ledger"]);
});

test("an open order, a kill that hit nothing and a difference in the tables are reported", () => {
  const untouched = { ...runOf([...stepNames]), status: "running" as RunStatus };
  const effects = stepNames.map((step) => effectOf(step, killedPid));
  const difference = { kind: "run.status", runId: "r", log: "completed", table: "running", text: "" } as const;
  const verification = { ...fine, differences: [difference], found: 1, unchecked: 0 };
  expect(wrongIn({ ...account, runs: [untouched], effects, verification })).toEqual([
    "orders completed",
    "orders taken over by worker 2",
    "differences between log and tables",
  ]);
});

function wrongIn(given: Account): string[] {
  return rowsOf(given)
    .filter(({ holds }) => !holds)
    .map(({ what }) => what);
}

function effectOf(step: string, pid: number): Effect {
  return { run: "r", step, key: `r:${step}`, pid };
}

function runOf(steps: readonly string[]): RunProgress {
  const history = steps.map((step, index): HistoryEvent => {
    const event = step === "RECOVERED" ? { type: "run.recovered", node: null } : { type: "step.completed", node: step };
    return { ...event, seq: index + 1, attempt: null, outcome: null, at: new Date(0), data: {} };
  });
  return { id: "r", status: "completed", history, done: stepNames.length, recovered: steps.includes("RECOVERED") };
}
