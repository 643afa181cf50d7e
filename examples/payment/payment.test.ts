import { AlreadyActiveError } from "pawl";
import { expect, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { crashEverywhere, executionsOf, type Stage, stageOn } from "../class-style/harness.js";
import { PaymentWorkflow } from "./payment.js";
import { resumePayments } from "./repair.js";
import { gateway, inventory, orders, RateLimited, receipts } from "./services.js";

const lamp = { type: "Order", id: "lamp" } as const;
const stolen = { type: "Order", id: "stolen" } as const;
const outage = () => new Error("503 Service Unavailable");

function reset(): void {
  orders.save({ id: "lamp", card: "visa", cents: 4_200, items: 2 });
  orders.save({ id: "stolen", card: "stolen", cents: 100, items: 1 });
  gateway.failures = [];
  gateway.down = false;
  for (const service of [receipts, inventory]) service.broken = false;
  for (const { effects } of [gateway, receipts, inventory]) effects.forget();
}

forMemoryAnd("sqlite", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [PaymentWorkflow], reset);

  test("an order is charged, its receipt is sent, and its goods are taken", async () => {
    const run = await pay(stage);
    expect(await run.status()).toBe("completed");
    expect(await executionsOf(run)).toEqual([
      "initiate_payment 1: completed (success)",
      "send_receipt 1: completed (success)",
      "update_inventory 1: completed (success)",
    ]);
    expect([gateway, receipts, inventory].map(({ effects }) => effects.all)).toEqual([
      ["4200 for order lamp"],
      ["receipt for order lamp"],
      ["2 items of order lamp"],
    ]);
  });

  test("a failing gateway is retried, each time a little later", async () => {
    gateway.failures = [outage(), outage()];
    const run = await pay(stage);
    expect((await executionsOf(run)).slice(0, 3)).toEqual([
      "initiate_payment 1: failed (reattempted_by_exception)",
      "initiate_payment 2: failed (reattempted_by_exception)",
      "initiate_payment 3: completed (success)",
    ]);
    const [first, second, third] = await run.executions();
    expect(first?.error).toMatchObject({ message: "503 Service Unavailable" });
    expect([second?.continuesFrom, third?.continuesFrom]).toEqual([first?.id, second?.id]);
    // One second, then two, each shortened by up to a half, so that simultaneous failures do not retry simultaneously.
    const firstWait = Number(second?.scheduledFor) - Number(first?.finishedAt);
    const secondWait = Number(third?.scheduledFor) - Number(second?.finishedAt);
    expect(firstWait >= 500 && firstWait <= 1_000).toBe(true);
    expect(secondWait >= 1_000 && secondWait <= 2_000).toBe(true);
    expect(gateway.effects.all).toEqual(["4200 for order lamp"]);
  });

  test("an overloaded gateway is retried when it says", async () => {
    gateway.failures = [new RateLimited("2 minutes")];
    const run = await pay(stage);
    expect((await executionsOf(run)).slice(0, 2)).toEqual([
      "initiate_payment 1: completed (reattempted)",
      "initiate_payment 2: completed (success)",
    ]);
    const [first, second] = await run.executions();
    expect(Number(second?.finishedAt) - Number(first?.finishedAt)).toBe(120_000);
    expect(gateway.effects.all).toEqual(["4200 for order lamp"]);
  });

  test("a retry time given by the gateway does not use up the reattempts", async () => {
    gateway.failures = [outage(), new RateLimited("1h"), outage(), new RateLimited("1h"), outage()];
    const run = await pay(stage);
    expect(await run.status()).toBe("completed");
    expect((await executionsOf(run)).slice(4, 6)).toEqual([
      "initiate_payment 5: failed (reattempted_by_exception)",
      "initiate_payment 6: completed (success)",
    ]);
  });

  test("an invalid card cancels the payment", async () => {
    const run = await pay(stage, stolen);
    expect(await executionsOf(run)).toEqual(["initiate_payment 1: canceled (canceled_by_flow_control)"]);
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "The card is not valid." } });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELED" });
    expect(gateway.effects.all).toEqual([]);
  });

  test("a receipt that cannot be sent is skipped", async () => {
    receipts.broken = true;
    const run = await pay(stage);
    expect(await run.status()).toBe("completed");
    expect((await executionsOf(run)).slice(1)).toEqual([
      "send_receipt 1: failed (skipped_by_exception)",
      "update_inventory 1: completed (success)",
    ]);
    expect((await run.executions())[1]?.error).toMatchObject({ message: "The mail server does not answer." });
    expect(inventory.effects.all).toEqual(["2 items of order lamp"]);
  });

  test("missing goods cancel the rest", async () => {
    inventory.broken = true;
    const run = await pay(stage);
    expect((await executionsOf(run)).slice(1)).toEqual([
      "send_receipt 1: completed (success)",
      "update_inventory 1: failed (canceled_by_exception)",
    ]);
    expect(await run.get()).toMatchObject({ status: "canceled" });
    expect((await run.executions())[2]?.error).toMatchObject({ message: "Out of stock." });
  });

  test("payments that were paused by a long outage are found by their order and continue when they are resumed", async () => {
    const { t } = stage;
    gateway.down = true;
    orders.save({ id: "chair", card: "visa", cents: 9_900, items: 1 });
    const chair = { type: "Order", id: "chair" } as const;
    const run = await t.pawl.start(PaymentWorkflow, undefined, { hero: lamp });
    const other = await t.pawl.start(PaymentWorkflow, undefined, { hero: chair });
    await t.advance("1 day");
    const pausedExecutions = [
      "initiate_payment 1: failed (reattempted_by_exception)",
      "initiate_payment 2: failed (reattempted_by_exception)",
      "initiate_payment 3: failed (reattempted_by_exception)",
      "initiate_payment 4: failed (paused_by_exception)",
    ];
    expect(await executionsOf(run)).toEqual(pausedExecutions);
    expect(await run.get()).toMatchObject({ status: "paused", currentStep: "initiate_payment" });
    await expect(t.pawl.start(PaymentWorkflow, undefined, { hero: lamp })).rejects.toThrow(AlreadyActiveError);

    gateway.down = false;
    expect(await resumePayments(t.pawl, lamp)).toBe(1);
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      ...pausedExecutions,
      "initiate_payment 5: completed (success)",
      "send_receipt 1: completed (success)",
      "update_inventory 1: completed (success)",
    ]);
    expect(gateway.effects.all).toEqual(["4200 for order lamp"]);
    expect(await resumePayments(t.pawl, lamp)).toBe(0);

    expect(await other.status()).toBe("paused");
    expect(await resumePayments(t.pawl, chair)).toBe(1);
    await t.speedrun(other);
    expect(gateway.effects.all).toEqual(["4200 for order lamp", "9900 for order chair"]);
  });

  test("a resumed payment has all its reattempts again", async () => {
    const { t } = stage;
    gateway.failures = Array.from({ length: 7 }, outage);
    const run = await t.pawl.start(PaymentWorkflow, undefined, { hero: lamp });
    await t.advance("1 day");
    expect(await run.status()).toBe("paused");
    await resumePayments(t.pawl, lamp);
    await t.speedrun(run);
    expect((await executionsOf(run)).slice(3, 8)).toEqual([
      "initiate_payment 4: failed (paused_by_exception)",
      "initiate_payment 5: failed (reattempted_by_exception)",
      "initiate_payment 6: failed (reattempted_by_exception)",
      "initiate_payment 7: failed (reattempted_by_exception)",
      "initiate_payment 8: completed (success)",
    ]);
  });

  if (kind === "memory" || kind === "sqlite")
    test("a payment with failing services has the same result wherever its worker dies", async () => {
      await crashEverywhere(stage, PaymentWorkflow, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        hero: lamp,
        setup: () => {
          reset();
          gateway.failures = [outage(), new RateLimited("2 minutes")];
          receipts.broken = true;
        },
        check: () => {
          expect(gateway.effects.all).toEqual(["4200 for order lamp"]);
          expect(receipts.effects.all).toEqual([]);
          expect(inventory.effects.all).toEqual(["2 items of order lamp"]);
          expect(gateway.effects.repeats + inventory.effects.repeats).toBeLessThanOrEqual(1);
        },
      });
    });
});

async function pay({ t }: Stage, hero: typeof lamp | typeof stolen = lamp) {
  const run = await t.pawl.start(PaymentWorkflow, undefined, { hero });
  await t.speedrun(run);
  return run;
}
