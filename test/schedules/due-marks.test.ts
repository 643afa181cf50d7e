/** A schedule that must be looked at stays due when a person changes it before a worker has looked. */
import { schedule } from "pawl";
import { expect, test } from "vitest";
import { everyStore, forEachStore } from "../support/databases.js";
import { ledgerOf, report, schedulesOn, sunday } from "./support/schedule-worlds.js";

const computed = schedule("computed", { workflow: report, input: () => ({ day: 1 }), cron: "0 9 * * *" });
const hour = 3_600_000;

forEachStore((kind) => {
  const { cluster } = schedulesOn(kind);

  test("a pause right after a trigger does not take the requested run back", async () => {
    const w = await cluster();
    const worker = await w.process({ schedules: [computed] });
    await w.pawl.schedules.trigger("computed");
    await w.pawl.schedules.pause("computed");
    await worker.settle();
    expect(await ledgerOf(w.pawl, "computed")).toEqual(["ran 2026-11-01T12:00, manual"]);
  });

  test("a pause right after a backfill does not stop it", async () => {
    const w = await cluster();
    await w.pawl.createWorkflow("report");
    const worker = await w.process({});
    await w.pawl.schedules.put("hourly", { workflow: "report", input: {}, every: "1h" });
    await w.pawl.schedules.backfill("hourly", { from: new Date(sunday.getTime() - hour) });
    await w.pawl.schedules.pause("hourly");
    await worker.settle();
    const ledger = await ledgerOf(w.pawl, "hourly");
    expect(ledger).toEqual(["ran 2026-11-01T11:00, backfill", "ran 2026-11-01T12:00, backfill"]);
  });

  test("other options, also such that end the schedule, keep what waits", async () => {
    const w = await cluster();
    await w.pawl.createWorkflow("report");
    const worker = await w.process({});
    await w.pawl.schedules.put("hourly", { workflow: "report", input: {}, every: "1h" });
    await w.pawl.schedules.backfill("hourly", { from: new Date(sunday.getTime() - hour) });
    await w.pawl.schedules.put("hourly", { workflow: "report", input: {}, every: "1h", endAt: sunday });
    await worker.settle();
    const ledger = await ledgerOf(w.pawl, "hourly");
    expect(ledger).toEqual(["ran 2026-11-01T11:00, backfill", "ran 2026-11-01T12:00, backfill"]);
    expect(await w.pawl.schedules.get("hourly")).toMatchObject({ status: "ended", nextAt: null });
  });
}, everyStore);
