/** What bounds a schedule: startAt, endAt, except, maxRuns and pauseOnFailure. */
import { schedule, workflow } from "pawl";
import type { TestPawl } from "pawl/testing";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { errorOf } from "../support/waiting.js";
import { ledgerOf, report, runsOf, schedulesOn, waiting } from "./support/schedule-worlds.js";

const rule = { workflow: report, input: null, cron: "0 12 * * *" } as const;
const daysOf = async (t: TestPawl, name: string) => (await ledgerOf(t.pawl, name)).map((line) => line.slice(4, 14));

forEachStore((kind) => {
  const { start } = schedulesOn(kind);

  test("startAt, endAt and except bound what runs, and a schedule without further instants has ended", async () => {
    const bounded = schedule("bounded", {
      ...rule,
      startAt: "2026-11-03T00:00:00Z",
      endAt: new Date("2026-11-10T12:00:00Z"),
      except: ["2026-11-04", "* * * * SAT,SUN", new Date("2026-11-09T12:00:00Z")],
    });
    const t = await start({ schedules: [bounded] });
    await t.advance("20 days");
    expect(await daysOf(t, "bounded")).toEqual(["2026-11-03", "2026-11-05", "2026-11-06", "2026-11-10"]);
    expect(await t.pawl.schedules.get("bounded")).toMatchObject({ status: "ended", nextFor: null, nextAt: null });
    expect((await errorOf(t.pawl.schedules.pause("bounded"))).message).toContain("it has ended");
    expect((await t.pawl.schedules.trigger("bounded")).outcome).toBe("ran");
  });

  test("maxRuns ends a schedule; skipped occurrences and manual runs do not count", async () => {
    const limited = schedule("limited", { workflow: waiting, input: null, cron: "0 12 * * *", maxRuns: 2 });
    const t = await start({ schedules: [limited] });
    await t.advance("50h");
    await t.pawl.schedules.trigger("limited", { force: true });
    await t.settle();
    for (const { id } of await runsOf(t.pawl, "waiting")) await t.pawl.run(id).signal("go");
    await t.advance("5 days");
    expect(await ledgerOf(t.pawl, "limited")).toEqual([
      "ran 2026-11-02T12:00",
      "skipped_overlap 2026-11-03T12:00",
      "ran 2026-11-03T14:00, manual",
      "ran 2026-11-04T12:00",
    ]);
    expect(await t.pawl.schedules.get("limited")).toMatchObject({ status: "ended", acceptedRuns: 2 });
  });

  test("a schedule that has ended goes on with a larger maxRuns, and not for the past", async () => {
    const t = await start({ schedules: [schedule("limited", { ...rule, maxRuns: 1 })] });
    await t.advance("3 days");
    await t.deploy([report], [], []);
    await t.deploy([report], [], [schedule("limited", { ...rule, maxRuns: 2 })]);
    await t.advance("3 days");
    expect(await daysOf(t, "limited")).toEqual(["2026-11-02", "2026-11-05"]);
  });

  const fates: Record<number, "fail" | "succeed" | "cancel"> = {};
  const fragile = workflow("fragile", async (ctx) => {
    const day = ctx.schedule?.scheduledFor.getUTCDate() as number;
    if (fates[day] === "fail") throw new Error("broken");
    if (fates[day] === "cancel") await ctx.waitForSignal("never");
  });

  test("pauseOnFailure: failed runs in a row pause it; a success resets the count, and a canceled run does not", async () => {
    Object.assign(fates, { 2: "fail", 3: "succeed", 4: "fail", 5: "cancel", 6: "fail", 7: "succeed" });
    const breaking = schedule("breaking", { workflow: fragile, cron: "0 12 * * *", pauseOnFailure: 2 });
    const t = await start({ workflows: [fragile], schedules: [breaking] });
    await t.advance("3 days");
    expect(await t.pawl.schedules.get("breaking")).toMatchObject({ status: "active", failedInARow: 1 });
    await t.advance("1 day");
    const canceled = (await runsOf(t.pawl, "fragile")).at(-1);
    await t.pawl.run(canceled?.id as string).cancel();
    await t.settle();
    expect(await t.pawl.schedules.get("breaking")).toMatchObject({ status: "active", failedInARow: 1 });
    await t.advance("2 days");
    expect(await t.pawl.schedules.get("breaking")).toMatchObject({
      status: "paused",
      failedInARow: 2,
      pauseReason: "2 runs in a row have failed.",
      pausedBy: null,
    });
    expect(await daysOf(t, "breaking")).toHaveLength(5);
    await t.pawl.schedules.resume("breaking");
    await t.settle();
    expect(await t.pawl.schedules.get("breaking")).toMatchObject({ status: "active", failedInARow: 0 });
    expect((await ledgerOf(t.pawl, "breaking")).at(-1)).toBe("ran 2026-11-07T12:00");
  });
});
