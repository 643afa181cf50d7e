import { expect, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { crashEverywhere, executionsOf, firstDay, stageOn } from "../class-style/harness.js";
import { copy, externalApi } from "./api.js";
import { ApiSync } from "./rates.js";

const everything = ["1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b", "5a", "5b"];

function reset(): void {
  externalApi.reset(5, 2);
  copy.effects.forget();
}

forMemoryAnd("sqlite", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [ApiSync], reset);

  test("whenever the API refuses, the run waits for as long as the API says", async () => {
    const { t } = stage;
    const run = await t.pawl.start(ApiSync);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "waiting", currentStep: "sync_external_api" });
    expect(await executionsOf(run)).toEqual([
      "sync_external_api 1: completed (continued)",
      "sync_external_api 2: scheduled (null)",
    ]);
    await t.assertStepHasSuccessor(run, "sync_external_api");
    await t.assertCursor(run, 3);
    expect(copy.effects.all).toEqual(everything.slice(0, 4));

    await t.advance("59s");
    expect(copy.effects.all).toEqual(everything.slice(0, 4));
    await t.advance("1s");
    expect(copy.effects.all).toEqual(everything.slice(0, 8));
    await t.assertCursor(run, 5);

    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "sync_external_api 1: completed (continued)",
      "sync_external_api 2: completed (continued)",
      "sync_external_api 3: completed (success)",
    ]);
    const executions = await run.executions();
    expect(executions.map(({ finishedAt }) => Number(finishedAt) - Number(firstDay))).toEqual([0, 60_000, 120_000]);
    expect(executions.map(({ continuesFrom }) => continuesFrom)).toEqual([
      null,
      ...executions.slice(0, -1).map(({ id }) => id),
    ]);
    expect(copy.effects.all).toEqual(everything);
    expect(copy.effects.repeats).toBe(0);
  });

  test("an API without limits is copied in one execution", async () => {
    const { t } = stage;
    externalApi.reset(5, Number.POSITIVE_INFINITY);
    const run = await t.pawl.start(ApiSync);
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(await executionsOf(run)).toEqual(["sync_external_api 1: completed (success)"]);
    expect(copy.effects.all).toEqual(everything);
  });

  test("a run that waits for the API can be canceled, and sends no more requests", async () => {
    const { t } = stage;
    const run = await t.pawl.start(ApiSync);
    await t.settle();
    await run.cancel("not needed any more");
    await t.advance("1h");
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "not needed any more" } });
    expect(copy.effects.all).toEqual(everything.slice(0, 4));
  });

  if (kind === "memory" || kind === "sqlite")
    test("everything is copied wherever the worker dies, and at most one page is stored again", async () => {
      await crashEverywhere(stage, ApiSync, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        setup: reset,
        check: () => {
          expect(copy.effects.all).toEqual(everything);
          expect(copy.effects.repeats).toBeLessThanOrEqual(2);
        },
      });
    });
});
