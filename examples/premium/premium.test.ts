import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { world } from "../../test/support/virtual-worlds.js";
import { crashEverywhere, executionsOf, firstDay, stageOn } from "../class-style/harness.js";
import { type Customer, customers, service } from "./app.js";
import { Onboarding } from "./onboarding.js";
import { PremiumOnboarding } from "./premium.js";

const ada: Customer = { id: "1", name: "Ada", deactivated: false, subscriptionExpired: false };
const hero = { type: "Customer", id: ada.id } as const;

function reset(): void {
  service.effects.forget();
  customers.save(ada);
}

forMemoryAnd("postgres", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [Onboarding, PremiumOnboarding], reset);

  test("a premium customer gets the inherited steps and the added ones, each in its place", async () => {
    const { t } = stage;
    const run = await t.pawl.start(PremiumOnboarding, undefined, { hero });
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "assign_manager 1: completed (success)",
      "send_welcome 1: completed (success)",
      "send_gift 1: completed (success)",
      "send_tips 1: completed (success)",
      "call 1: completed (success)",
    ]);
    const days = (await run.executions()).map(({ finishedAt }) => (Number(finishedAt) - Number(firstDay)) / 86_400_000);
    expect(days).toEqual([0, 0, 1, 4, 18]);
    expect(service.effects.all).toEqual([
      "manager for Ada",
      "premium welcome for Ada",
      "gift for Ada",
      "tips for Ada",
      "call for Ada",
    ]);
    expect(await run.get()).toMatchObject({ status: "completed", queue: "premium", priority: 5 });
  });

  test("the steps of the subclass do not affect its parent", async () => {
    const { t } = stage;
    customers.save({ ...ada, subscriptionExpired: true });
    const run = await t.pawl.start(Onboarding, undefined, { hero });
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "send_welcome 1: completed (success)",
      "send_tips 1: completed (success)",
    ]);
    expect(service.effects.all).toEqual(["welcome for Ada", "tips for Ada"]);
    expect(await run.get()).toMatchObject({ status: "completed", queue: "workflows", priority: 5 });
  });

  test("the subclass's own condition cancels its run when the next step is due", async () => {
    const { t } = stage;
    const run = await t.pawl.start(PremiumOnboarding, undefined, { hero });
    await t.advance("2 days");
    customers.save({ ...ada, subscriptionExpired: true });
    expect(await run.status()).toBe("waiting");
    await t.speedrun(run);
    expect((await executionsOf(run)).slice(2)).toEqual([
      "send_gift 1: completed (success)",
      "send_tips 1: canceled (canceled_by_condition)",
    ]);
    expect(await run.get()).toMatchObject({
      status: "canceled",
      error: { message: "A cancelIf condition (subscriptionExpired) is true." },
    });
    expect(service.effects.all).not.toContain("tips for Ada");
  });

  test("the condition of the base class cancels the runs of all subclasses", async () => {
    const { t } = stage;
    customers.save({ ...ada, deactivated: true });
    const runs = [
      await t.pawl.start(Onboarding, undefined, { hero }),
      await t.pawl.start(PremiumOnboarding, undefined, { hero }),
    ];
    await t.settle();
    expect(await Promise.all(runs.map(executionsOf))).toEqual([
      ["send_welcome 1: canceled (canceled_by_condition)"],
      ["assign_manager 1: canceled (canceled_by_condition)"],
    ]);
    expect(service.effects.all).toEqual([]);
  });

  if (kind === "memory" || kind === "postgres")
    test("premium onboarding has the same result wherever its worker dies", async () => {
      await crashEverywhere(stage, PremiumOnboarding, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        hero,
        setup: reset,
        check: () => {
          expect(service.effects.all.map((effect) => effect.replace(" for Ada", ""))).toEqual([
            "manager",
            "premium welcome",
            "gift",
            "tips",
            "call",
          ]);
          expect(service.effects.repeats).toBeLessThanOrEqual(1);
        },
      });
    });
});

forMemoryAnd("postgres", (kind) => {
  test("a worker for one queue does not execute the runs of the other class", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    reset();
    const { pawl, clock, worker } = await world(kind, database.url);
    const workflows = [Onboarding, PremiumOnboarding];
    const plain = await pawl.start(Onboarding, undefined, { hero });
    const premium = await pawl.start(PremiumOnboarding, undefined, { hero });

    const forAll = await worker(workflows, { queues: ["workflows"] });
    for (let due = await forAll.settle(); due !== null; due = await forAll.settle()) clock.moveTo(due);
    expect(await plain.status()).toBe("completed");
    expect(await premium.status()).toBe("pending");

    const forPremium = await worker(workflows, { queues: ["premium"] });
    for (let due = await forPremium.settle(); due !== null; due = await forPremium.settle()) clock.moveTo(due);
    expect(await premium.status()).toBe("completed");
    expect((await pawl.verify()).differences).toEqual([]);
  });
});
