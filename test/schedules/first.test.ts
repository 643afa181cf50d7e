import { schedule, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, test } from "vitest";

test("a schedule starts a run at each instant, with what it computes from it", async () => {
  const seen: unknown[] = [];
  const report = workflow("report", async (ctx, input: { day: Date }) => {
    seen.push({ day: input.day.toISOString(), schedule: ctx.schedule?.name, missed: ctx.schedule?.missed });
  });
  const nightly = schedule("nightly", {
    workflow: report,
    input: ({ scheduledFor }) => ({ day: scheduledFor }),
    cron: "30 2 * * *",
    timeZone: "Europe/Berlin",
  });
  const t = await testPawl({ workflows: [report], schedules: [nightly], startAt: new Date("2026-11-01T12:00:00Z") });
  await t.advance("3 days");
  expect(seen).toHaveLength(3);
  const o = await t.pawl.schedules.trigger("nightly", { by: "ada" });
  await t.settle();
  expect(seen).toHaveLength(4);
  await t.pawl.schedules.backfill("nightly", { from: new Date("2026-10-28") });
  await t.settle();
  expect(seen).toHaveLength(9);
  await t.close();
});
