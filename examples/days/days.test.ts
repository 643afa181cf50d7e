import { expect, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { crashEverywhere, executionsOf, stageOn } from "../class-style/harness.js";
import { CloseLedger, type Closing } from "./days.js";
import { ledger } from "./ledger.js";

const winter: Closing = { from: new Date("2024-02-20"), until: new Date("2024-03-06"), batches: 4 };
const days = [
  ...[20, 21, 22, 23, 24, 25, 26, 27, 28, 29].map((day) => `2024-02-${day}`),
  ...[1, 2, 3, 4, 5, 6].map((day) => `2024-03-0${day}`),
];
const batches = ["batch 0", "batch 1", "batch 2", "batch 3"];

function reset(): void {
  ledger.effects.forget();
  ledger.wrongDay = null;
}

forMemoryAnd("postgres", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [CloseLedger], reset);

  test("each day is closed once, in order, a week per execution, and then the batches are archived", async () => {
    const { t } = stage;
    const run = await t.pawl.start(CloseLedger, winter);
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "process_days 1: completed (continued)",
      "process_days 2: completed (continued)",
      "process_days 3: completed (success)",
      "process_batches 1: completed (success)",
    ]);
    expect(ledger.effects.all).toEqual([...days, ...batches]);
    expect(ledger.effects.repeats).toBe(0);
    const progress = new Map((await run.progress()).map((one) => [one.node, one]));
    expect(progress.get("process_days")).toMatchObject({ done: 16, total: null });
    expect(progress.get("process_batches")).toMatchObject({ done: 4, total: 4 });
  });

  test("a day that does not balance pauses the run at that day, and the cursor is that date", async () => {
    const { t } = stage;
    ledger.wrongDay = "2024-03-01";
    const run = await t.pawl.start(CloseLedger, winter);
    await t.settle();
    expect(await executionsOf(run)).toEqual([
      "process_days 1: completed (continued)",
      "process_days 2: failed (paused_by_exception)",
    ]);
    await t.assertCursor(run, new Date("2024-03-01"));
    expect((await run.executions())[1]?.error).toMatchObject({ message: "The entries of 2024-03-01 do not add up." });
    expect(ledger.effects.all).toEqual(days.slice(0, 10));

    ledger.wrongDay = null;
    await run.resume();
    await t.speedrun(run);
    expect((await executionsOf(run)).slice(2)).toEqual([
      "process_days 3: completed (success)",
      "process_batches 1: completed (success)",
    ]);
    expect(ledger.effects.all).toEqual([...days, ...batches]);
    expect(ledger.effects.repeats).toBe(0);
  });

  test("when it is executed one step at a time, nothing interrupts the days", async () => {
    const { t } = stage;
    const run = await t.pawl.start(CloseLedger, winter);
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "process_days", attempt: 1, outcome: "success" });
    expect(ledger.effects.all).toEqual(days);
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "process_batches", outcome: "success" });
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(ledger.effects.all).toEqual([...days, ...batches]);
  });

  test("the last day defaults to today", async () => {
    const { t } = stage;
    const run = await t.pawl.start(CloseLedger, { from: new Date("2029-12-30"), batches: 0 });
    await t.speedrun(run);
    expect(ledger.effects.all).toEqual(["2029-12-30", "2029-12-31", "2030-01-01"]);
  });

  if (kind === "memory" || kind === "postgres")
    test("every day and batch is processed wherever the worker dies, and at most one of them is repeated", async () => {
      await crashEverywhere(stage, CloseLedger, winter, {
        points: kind === "memory" ? "all" : sized(2, 4),
        setup: reset,
        check: () => {
          expect(ledger.effects.all).toEqual([...days, ...batches]);
          expect(ledger.effects.repeats).toBeLessThanOrEqual(1);
        },
      });
    });
});
