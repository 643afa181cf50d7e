/** What happens when an occurrence is due while a run of its schedule is open. */
import { type ScheduleSettings, schedule } from "pawl";
import type { TestPawl } from "pawl/testing";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { briefly } from "../support/effort.js";
import { ledgerOf, runsOf, schedulesOn, waiting } from "./support/schedule-worlds.js";

type Overlap = NonNullable<ScheduleSettings["overlap"]>;

/** At 13:00, 14:00 and so on; a run is open until the test ends it. */
const hourly = (overlap: Overlap = "skip", more: Partial<ScheduleSettings> = {}) =>
  schedule("hourly", { workflow: waiting, input: null, every: "1h", overlap, ...more });

const openRun = async (t: TestPawl) => {
  const runs = await runsOf(t.pawl, "waiting");
  const open = runs.find(({ finishedAt }) => finishedAt === null);
  if (open === undefined) throw new Error("No run is open.");
  return t.pawl.run(open.id);
};

async function endRun(t: TestPawl): Promise<void> {
  await (await openRun(t)).signal("go");
  await t.settle();
}

forEachStore(
  (kind) => {
    const { start } = schedulesOn(kind);

    test("skip: nothing runs beside an open run, and the skipped occurrences are one row", async () => {
      const t = await start({ schedules: [hourly()] });
      await t.advance("4h");
      expect(await ledgerOf(t.pawl, "hourly")).toEqual([
        "ran 2026-11-01T13:00",
        "skipped_overlap 2026-11-01T14:00 to 2026-11-01T16:00 (3)",
      ]);
      await endRun(t);
      await t.advance("2h");
      expect((await ledgerOf(t.pawl, "hourly")).slice(2)).toEqual([
        "ran 2026-11-01T17:00",
        "skipped_overlap 2026-11-01T18:00",
      ]);
    });

    test("bufferOne: one waits for the end of the run, and begins in its commit's wake", async () => {
      const t = await start({ schedules: [hourly("bufferOne")] });
      await t.advance("4h");
      expect(await t.pawl.schedules.get("hourly")).toMatchObject({ openRuns: 1, waiting: 1 });
      await endRun(t);
      expect(await ledgerOf(t.pawl, "hourly")).toEqual([
        "ran 2026-11-01T13:00",
        "ran 2026-11-01T14:00",
        "skipped_buffer_full 2026-11-01T15:00 to 2026-11-01T16:00 (2)",
      ]);
      expect(await t.pawl.schedules.get("hourly")).toMatchObject({ openRuns: 1, waiting: 0 });
    });

    test("bufferAll: all wait, and run one after another", async () => {
      const t = await start({ schedules: [hourly("bufferAll", { endAt: "2026-11-01T16:00:00Z" })] });
      await t.advance("6h");
      expect(await t.pawl.schedules.get("hourly")).toMatchObject({ status: "ended", openRuns: 1, waiting: 3 });
      for (let ended = 0; ended < 4; ended += 1) await endRun(t);
      const runs = await runsOf(t.pawl, "waiting");
      expect(runs.map(({ status }) => status)).toEqual(["completed", "completed", "completed", "completed"]);
      expect(await ledgerOf(t.pawl, "hourly")).toHaveLength(4);
    });

    test("bufferAll: a hundred wait at most", async () => {
      const t = await start({
        schedules: [schedule("hourly", { workflow: waiting, input: null, every: "1m", overlap: "bufferAll" })],
      });
      await t.advance("103m");
      expect(await t.pawl.schedules.get("hourly")).toMatchObject({ openRuns: 1, waiting: 100 });
      expect((await ledgerOf(t.pawl, "hourly")).at(-1)).toBe(
        "skipped_buffer_full 2026-11-01T13:42 to 2026-11-01T13:43 (2)",
      );
    });

    test("cancelOther: the open run is canceled, and the new one starts when it has ended", async () => {
      const t = await start({ schedules: [hourly("cancelOther")] });
      await t.advance("3h");
      const runs = await runsOf(t.pawl, "waiting");
      expect(runs.map(({ status }) => status)).toEqual(["canceled", "canceled", "waiting"]);
      expect(await ledgerOf(t.pawl, "hourly")).toEqual([
        "ran 2026-11-01T13:00",
        "ran 2026-11-01T14:00",
        "ran 2026-11-01T15:00",
      ]);
    });

    test("allowAll: each runs", async () => {
      const t = await start({ schedules: [hourly("allowAll")] });
      await t.advance("3h");
      expect(await t.pawl.schedules.get("hourly")).toMatchObject({ openRuns: 3, waiting: 0 });
    });

    test.each<[Overlap, string[]]>([
      ["skip", ["ran", "skipped_overlap"]],
      ["bufferOne", ["ran", "buffered"]],
      ["cancelOther", ["ran", "ran"]],
    ])("a paused run is open: %s", async (overlap, expected) => {
      const t = await start({ schedules: [hourly(overlap)], recheckPausedAfter: null });
      await t.advance("1h");
      await (await openRun(t)).pause();
      await t.advance("1h");
      expect((await ledgerOf(t.pawl, "hourly")).map((line) => line.split(" ")[0])).toEqual(expected);
      const [first] = await runsOf(t.pawl, "waiting");
      expect(first?.status).toBe(overlap === "cancelOther" ? "canceled" : "paused");
    });

    test("a canceled run is not open: what waits begins", async () => {
      const t = await start({ schedules: [hourly("bufferOne")] });
      await t.advance("2h");
      await (await openRun(t)).cancel();
      await t.settle();
      expect(await ledgerOf(t.pawl, "hourly")).toEqual(["ran 2026-11-01T13:00", "ran 2026-11-01T14:00"]);
      expect((await runsOf(t.pawl, "waiting")).map(({ status }) => status)).toEqual(["canceled", "waiting"]);
    });

    test("what waits begins also if the schedule is changed while the end of the run is not known to a worker yet", async () => {
      const t = await start({ schedules: [] });
      const rule = { workflow: "waiting", input: null, every: "1h", overlap: "bufferOne" } as const;
      await t.pawl.schedules.put("hourly", rule);
      await t.advance("2h");
      await (await openRun(t)).cancel();
      await t.pawl.schedules.put("hourly", { ...rule, tags: ["new"] });
      await t.settle();
      expect(await ledgerOf(t.pawl, "hourly")).toEqual(["ran 2026-11-01T13:00", "ran 2026-11-01T14:00"]);
    });
  },
  briefly("memory", "postgres"),
);
