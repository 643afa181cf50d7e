import { AlreadyActiveError } from "pawl";
import { expect, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { crashEverywhere, executionsOf, firstDay, stageOn } from "../class-style/harness.js";
import { mailer, users } from "./app.js";
import { SignupWorkflow } from "./signup.js";

const ada = { type: "User", id: "1" } as const;
const bob = { type: "User", id: "2" } as const;

function reset(): void {
  mailer.effects.forget();
  users.replaceAll([
    { id: "1", email: "ada@example.com", onboardingCompleted: false },
    { id: "2", email: "bob@example.com", onboardingCompleted: false },
  ]);
}

forMemoryAnd("mysql", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [SignupWorkflow], reset);

  test("a user is welcomed, reminded on the third day, and onboarded on the tenth", async () => {
    const { t } = stage;
    const run = await t.pawl.start(SignupWorkflow, undefined, { hero: ada });
    await t.advance("1 day 23h");
    expect(mailer.effects.all).toEqual(["welcome to ada@example.com"]);
    expect(await run.get()).toMatchObject({ status: "waiting", currentStep: "send_reminder" });
    expect(await executionsOf(run)).toEqual([
      "send_welcome_email 1: completed (success)",
      "send_reminder 1: scheduled (null)",
    ]);

    await t.advance("1h");
    expect(mailer.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@example.com"]);

    await t.speedrun(run);
    await run.result();
    expect(await executionsOf(run)).toEqual([
      "send_welcome_email 1: completed (success)",
      "send_reminder 1: completed (success)",
      "complete_onboarding 1: completed (success)",
    ]);
    expect((await run.executions()).map(({ finishedAt }) => dayOf(finishedAt))).toEqual([1, 3, 10]);
    expect(await users.find("1")).toMatchObject({ onboardingCompleted: true });
    expect(await users.find("2")).toMatchObject({ onboardingCompleted: false });
  });

  test("a user has one signup at a time, also while it is paused", async () => {
    const { t } = stage;
    const first = await t.pawl.start(SignupWorkflow, undefined, { hero: ada });
    const startAgain = () => t.pawl.start(SignupWorkflow, undefined, { hero: ada });
    const refusal = await startAgain().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AlreadyActiveError);
    expect(refusal).toMatchObject({ runId: first.id });
    await t.settle();
    await first.pause("a question");
    await expect(startAgain()).rejects.toThrow(AlreadyActiveError);
    await first.resume();

    const other = await t.pawl.start(SignupWorkflow, undefined, { hero: bob });
    await t.speedrun(first);
    await t.speedrun(other);
    const second = await startAgain();
    await t.speedrun(second);
    expect((await t.pawl.runs({ workflow: SignupWorkflow, hero: ada, status: "completed" })).runs).toContainEqual(
      expect.objectContaining({ id: second.id }),
    );
  });

  test("of many concurrent starts for one user, one wins", async () => {
    const { t } = stage;
    const starts = await Promise.allSettled(
      Array.from({ length: 10 }, () => t.pawl.start(SignupWorkflow, undefined, { hero: ada })),
    );
    const [winner, ...others] = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    expect(others).toEqual([]);
    for (const start of starts)
      if (start.status === "rejected")
        expect(start.reason).toMatchObject({ code: "ALREADY_ACTIVE", runId: winner?.id });
    await t.speedrun(winner!);
    expect(mailer.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@example.com"]);
  });

  test("the reminder goes to the address that the user has by then", async () => {
    const { t } = stage;
    const run = await t.pawl.start(SignupWorkflow, undefined, { hero: ada });
    await t.advance("1 day");
    await users.update("1", { email: "ada@home.example" });
    await t.speedrun(run);
    expect(mailer.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@home.example"]);
  });

  test("the signup of a user who has left is canceled when its next step is due", async () => {
    const { t } = stage;
    const run = await t.pawl.start(SignupWorkflow, undefined, { hero: ada });
    await t.advance("1 day");
    await users.delete("1");
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "send_welcome_email 1: completed (success)",
      "send_reminder 1: canceled (canceled_by_condition)",
    ]);
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "The hero User 1 is gone." } });
    expect(dayOf((await run.get()).canceledAt)).toBe(3);
  });

  if (kind === "memory" || kind === "mysql")
    test("a signup has the same result wherever its worker dies", async () => {
      await crashEverywhere(stage, SignupWorkflow, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        hero: ada,
        setup: reset,
        check: () => {
          expect(mailer.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@example.com"]);
          expect(mailer.effects.repeats).toBeLessThanOrEqual(1);
        },
      });
      expect(await users.find("1")).toMatchObject({ onboardingCompleted: true });
    });
});

/** The first is 1. */
const dayOf = (at: Date | null) => (Number(at) - Number(firstDay)) / 86_400_000 + 1;
