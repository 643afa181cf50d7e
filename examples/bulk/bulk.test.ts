import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { logOf } from "../../test/support/run-checks.js";
import { world } from "../../test/support/virtual-worlds.js";
import { gate, until } from "../../test/support/waiting.js";
import { crashEverywhere, executionsOf, stageOn } from "../class-style/harness.js";
import { campaigns, mailer, notifications } from "./app.js";
import { BulkNotificationWorkflow } from "./bulk.js";

const spring = { type: "Campaign", id: "spring" } as const;
const idsOf = (subscribers: number) => Array.from({ length: subscribers }, (_, index) => (index + 1) * 3);
const emailsOf = (subscribers: number) => idsOf(subscribers).map((id) => `s${id}@example.com`);

function reset(subscribers: number): void {
  campaigns.save({ id: "spring", status: "draft", subscribers });
  mailer.effects.forget();
  mailer.stall = null;
  notifications.effects.forget();
  notifications.statements = [];
}

forMemoryAnd("postgres", (kind) => {
  const stage = stageOn(
    () => testDatabase(kind),
    [BulkNotificationWorkflow],
    () => reset(25),
  );

  test("every subscriber gets one mail and one notification", async () => {
    const { t } = stage;
    const run = await t.pawl.start(BulkNotificationWorkflow, undefined, { hero: spring });
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "prepare_campaign 1: completed (success)",
      "send_notifications 1: completed (continued)",
      "send_notifications 2: completed (success)",
      "bulk_insert_notifications 1: completed (success)",
      "finalize 1: completed (success)",
    ]);
    const [, first, second] = await run.executions();
    expect([first?.successor, second?.continuesFrom]).toEqual([second?.id, first?.id]);
    expect(mailer.effects.all).toEqual(emailsOf(25));
    expect(notifications.effects.all).toEqual(idsOf(25));
    expect(notifications.statements).toEqual([10, 10, 5]);
    expect(mailer.effects.repeats + notifications.effects.repeats).toBe(0);
    expect(await campaigns.find("spring")).toMatchObject({ status: "sent" });
    expect(await run.progress()).toContainEqual(
      expect.objectContaining({ node: "send_notifications", done: 25, total: 25 }),
    );
  });

  test("a campaign without subscribers is sent at once", async () => {
    const { t } = stage;
    reset(0);
    const run = await t.pawl.start(BulkNotificationWorkflow, undefined, { hero: spring });
    await t.speedrun(run);
    expect((await run.executions()).map(({ outcome }) => outcome)).toEqual(Array(4).fill("success"));
    expect(await campaigns.find("spring")).toMatchObject({ status: "sent" });
  });

  if (kind === "memory" || kind === "postgres")
    test("a campaign has the same result wherever its worker dies", async () => {
      await crashEverywhere(stage, BulkNotificationWorkflow, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        hero: spring,
        setup: () => reset(25),
        check: () => {
          expect(mailer.effects.all).toEqual(emailsOf(25));
          expect(notifications.effects.all).toEqual(idsOf(25));
          // At most the mail in flight, or the batch, is repeated.
          expect(mailer.effects.repeats + notifications.effects.repeats / 10).toBeLessThanOrEqual(1);
        },
      });
    });
});

forMemoryAnd("postgres", (kind) => {
  test("a worker that is killed in the middle of the mails repeats at most the mail in flight", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    reset(18);
    const { pawl, worker } = await world(kind, database.url);
    const stalled = gate();
    mailer.stall = { at: 10, reached: stalled.open };

    const doomed = await worker([BulkNotificationWorkflow]);
    const run = await pawl.start(BulkNotificationWorkflow, undefined, { hero: spring });
    await stalled.opened;
    // The start of a step is recorded only when the step takes longer than a moment.
    await until(async () => (await logOf(run)).includes("step.started send_notifications"));
    expect(await run.progress()).toContainEqual(
      expect.objectContaining({ node: "send_notifications", done: 9, total: 18 }),
    );
    await doomed.kill();

    const heir = await worker([BulkNotificationWorkflow]);
    await heir.settle();
    await run.result({ timeout: "100s" });
    expect(await executionsOf(run)).toEqual([
      "prepare_campaign 1: completed (success)",
      "send_notifications 1: failed (abandoned)",
      "send_notifications 2: completed (success)",
      "bulk_insert_notifications 1: completed (success)",
      "finalize 1: completed (success)",
    ]);
    expect(mailer.effects.all).toEqual(emailsOf(18));
    expect(mailer.effects.repeats).toBe(1);
    expect(notifications.effects.repeats).toBe(0);
    expect((await pawl.verify()).differences).toEqual([]);
  });
});
