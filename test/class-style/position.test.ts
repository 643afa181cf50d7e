/** The position of a run: before its first step has started, between two steps, and while it is paused there. */
import { Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";

let paused: () => unknown = () => {};
beforeEach(() => {
  paused = () => {};
});

class Onboarding extends Workflow {
  static {
    this.step("welcome", { wait: "1h" }, () => paused());
    this.step("remind", { wait: "2 days" }, () => {});
    this.step("close", () => {});
  }
}

class AtOnce extends Workflow {
  static {
    this.step("first", () => paused());
    this.step("second", () => {});
  }
}

async function openTestPawl(kind: StoreKind) {
  const database = await testDatabase(kind);
  const startAt = Date.UTC(2026, 0, 1);
  const t = await testPawl({ workflows: [Onboarding, AtOnce], store: database.url, startAt });
  onTestFinished(async () => {
    await t.close();
    await database.drop();
  });
  return { t, startAt };
}

const hour = 3_600_000;

forMemoryAnd("mysql", (kind) => {
  test("a run that has not started is at its first step, which is scheduled for its start time", async () => {
    const { t, startAt } = await openTestPawl(kind);
    const run = await t.pawl.start(Onboarding, undefined, { delay: "3h" });
    const [execution, ...others] = await run.executions();
    expect(execution).toMatchObject({
      step: "welcome",
      attempt: 1,
      state: "scheduled",
      startedAt: null,
      outcome: null,
    });
    expect(execution?.scheduledFor?.getTime()).toBe(startAt + 4 * hour);
    expect(others).toEqual([]);
    expect(await run.get()).toMatchObject({ currentStep: "welcome", currentExecution: execution?.id });
    // The same execution then runs at that time.
    await t.speedrunCurrentStep(run);
    const [executed] = await run.executions();
    expect(executed).toMatchObject({ id: execution?.id, state: "completed", outcome: "success" });
    expect(executed?.startedAt?.getTime()).toBe(startAt + 4 * hour);
  });

  test("a run that is paused between two steps is at the next one, which is scheduled", async () => {
    const { t } = await openTestPawl(kind);
    const run = await t.pawl.start(AtOnce);
    paused = () => run.pause("not now");
    await t.settle();
    expect(await run.status()).toBe("paused");
    const executions = await run.executions();
    expect(executions.map(({ step, state }) => `${step} ${state}`)).toEqual(["first completed", "second scheduled"]);
    expect(executions[1]?.scheduledFor).toEqual(executions[0]?.finishedAt);
    expect(await run.get()).toMatchObject({ currentStep: "second", currentExecution: executions[1]?.id });
    await run.resume();
    await t.settle();
    expect((await run.executions()).map(({ id, state }) => [id, state])).toEqual(
      executions.map(({ id }) => [id, "completed"]),
    );
    expect(await run.get()).toMatchObject({ currentStep: null, currentExecution: null });
  });

  test("a run that is paused while it waits for a step keeps that step, and its time", async () => {
    const { t, startAt } = await openTestPawl(kind);
    const run = await t.pawl.start(Onboarding);
    await t.advance("2h");
    await run.pause();
    const at = { currentStep: "remind", status: "paused" };
    expect(await run.get()).toMatchObject(at);
    const last = (await run.executions()).at(-1);
    expect(last).toMatchObject({ step: "remind", state: "scheduled" });
    expect(last?.scheduledFor?.getTime()).toBe(startAt + 49 * hour);
  });

  test("a run that was moved to another step, and has not started it, is at that step", async () => {
    const { t } = await openTestPawl(kind);
    const run = await t.pawl.start(AtOnce);
    paused = () => run.pause();
    await t.settle();
    await run.resumeAt("first");
    expect((await run.executions()).at(-1)).toMatchObject({ step: "first", attempt: 2, state: "scheduled" });
  });

  test("no execution starts before it is due, and the timeline is in order, whatever becomes due meanwhile", async () => {
    const { t } = await openTestPawl(kind);
    const runs = [await t.pawl.start(Onboarding), await t.pawl.start(Onboarding, undefined, { delay: "30m" })];
    await t.advance("3 days");
    for (const run of runs) {
      expect(await run.status()).toBe("completed");
      const timeline = await run.timeline();
      expect(timeline.map(({ step }) => step)).toEqual(["welcome", "remind", "close"]);
      let before = 0;
      for (const { from, to, scheduledFor } of timeline) {
        expect(Number(from)).toBeGreaterThanOrEqual(Math.max(before, Number(scheduledFor ?? 0)));
        expect(Number(to)).toBeGreaterThanOrEqual(Number(from));
        before = Number(to);
      }
    }
  });
});

test("a function that has not started has no position, nor has a class that no worker has registered", async () => {
  const plain = workflow("plain", (ctx) => ctx.step("one", () => {}));
  const t = await testPawl({ workflows: [plain] });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(plain);
  expect(await run.executions()).toEqual([]);
  expect(await run.get()).toMatchObject({ currentStep: null, currentExecution: null });
});
