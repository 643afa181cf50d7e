/** What runs after downtime, after a pause, and when a retired schedule is back. */
import { type ScheduleSettings, schedule } from "pawl";
import type { TestPawl } from "pawl/testing";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { briefly } from "../support/effort.js";
import { ledgerOf, report, runsOf, schedulesOn } from "./support/schedule-worlds.js";

type CatchUp = NonNullable<ScheduleSettings["catchUp"]>;

/** At 00:00, 08:00 and 16:00; the tests begin at 12:00 of November 1st. */
const thrice = (catchUp?: CatchUp, more: Partial<ScheduleSettings> = {}) =>
  schedule("thrice", {
    workflow: report,
    input: null,
    every: "8h",
    ...(catchUp === undefined ? {} : { catchUp }),
    ...more,
  });

/** No process runs for two days, and half an hour. */
const down = (t: TestPawl, hours = 48.5) => t.clock.moveTo(Number(t.clock.now) + hours * 3_600_000);

const afterTwoDays: [string, CatchUp | undefined, string[]][] = [
  [
    "latest, the default",
    undefined,
    ["skipped_late 2026-11-01T16:00 to 2026-11-03T00:00 (5)", "ran 2026-11-03T08:00, missed 5"],
  ],
  [
    "latest within a day",
    { mode: "latest", within: "1 day" },
    ["skipped_late 2026-11-01T16:00 to 2026-11-03T00:00 (5)", "ran 2026-11-03T08:00, missed 5"],
  ],
  [
    "latest within an hour",
    { mode: "latest", within: "1h" },
    ["skipped_late 2026-11-01T16:00 to 2026-11-03T08:00 (6)"],
  ],
  ["none", "none", ["skipped_late 2026-11-01T16:00 to 2026-11-03T08:00 (6)"]],
  [
    "all",
    "all",
    [
      "ran 2026-11-01T16:00",
      "ran 2026-11-02T00:00",
      "ran 2026-11-02T08:00",
      "ran 2026-11-02T16:00",
      "ran 2026-11-03T00:00",
      "ran 2026-11-03T08:00",
    ],
  ],
  [
    "all within a day",
    { mode: "all", within: "1 day" },
    [
      "skipped_late 2026-11-01T16:00 to 2026-11-02T08:00 (3)",
      "ran 2026-11-02T16:00",
      "ran 2026-11-03T00:00",
      "ran 2026-11-03T08:00",
    ],
  ],
];

forEachStore(
  (kind) => {
    const { start, cluster } = schedulesOn(kind);

    test.each(afterTwoDays)("down for two days, catchUp %s", async (_, catchUp, expected) => {
      const t = await start({ schedules: [thrice(catchUp)] });
      down(t);
      await t.settle();
      expect(await ledgerOf(t.pawl, "thrice")).toEqual(expected);
      expect((await t.pawl.schedules.get("thrice")).nextFor).toEqual(new Date("2026-11-03T16:00:00Z"));
      await t.advance("4h");
      expect((await ledgerOf(t.pawl, "thrice")).at(-1)).toBe("ran 2026-11-03T16:00");
    });

    test.each(afterTwoDays)("paused for two days, catchUp %s", async (_, catchUp, expected) => {
      const t = await start({ schedules: [thrice(catchUp)] });
      await t.pawl.schedules.pause("thrice", { by: "ada", reason: "vacation" });
      await t.advance("48.5h");
      expect(await ledgerOf(t.pawl, "thrice")).toEqual([]);
      expect(await t.pawl.schedules.get("thrice")).toMatchObject({
        status: "paused",
        pausedBy: "ada",
        pauseReason: "vacation",
      });
      await t.pawl.schedules.resume("thrice");
      await t.settle();
      expect(await ledgerOf(t.pawl, "thrice")).toEqual(expected.map((line) => line.replace("skipped_late", "paused")));
      expect(await t.pawl.schedules.get("thrice")).toMatchObject({
        status: "active",
        pausedBy: null,
        pauseReason: null,
      });
    });

    test("a pause ends by itself at its end, and the instants up to it are recorded as paused", async () => {
      const t = await start({ schedules: [thrice("none")] });
      await t.pawl.schedules.pause("thrice", { until: "1 day" });
      await t.advance("1 day");
      expect(await t.pawl.schedules.get("thrice")).toMatchObject({ status: "active", pausedUntil: null });
      await t.advance("8h");
      expect(await ledgerOf(t.pawl, "thrice")).toEqual([
        "paused 2026-11-01T16:00 to 2026-11-02T08:00 (3)",
        "ran 2026-11-02T16:00",
      ]);
    });

    test("a pause that ended while no process ran: what came before its end is paused, what came later is late", async () => {
      const t = await start({ schedules: [thrice()] });
      await t.pawl.schedules.pause("thrice", { until: new Date("2026-11-02T12:00:00Z") });
      down(t);
      await t.settle();
      expect(await ledgerOf(t.pawl, "thrice")).toEqual([
        "paused 2026-11-01T16:00 to 2026-11-02T08:00 (3)",
        "skipped_late 2026-11-02T16:00 to 2026-11-03T00:00 (2)",
        "ran 2026-11-03T08:00, missed 5",
      ]);
    });

    test("a run goes on while its schedule is paused, and pausing twice keeps the first instant", async () => {
      const t = await start({ schedules: [thrice()] });
      const { pausedAt } = await t.pawl.schedules.pause("thrice");
      await t.advance("1h");
      const again = await t.pawl.schedules.pause("thrice", { reason: "still", until: "1h" });
      expect(again).toMatchObject({ pausedAt, pauseReason: "still" });
      const { status } = await t.pawl.schedules.resume("thrice");
      expect(status).toBe("active");
      expect(await t.pawl.schedules.resume("thrice")).toMatchObject({ status: "active" });
      await t.settle();
      expect(await ledgerOf(t.pawl, "thrice")).toEqual([]);
    });

    test.each(afterTwoDays)("retired for two days and back, catchUp %s", async (_, catchUp, expected) => {
      const t = await start({ schedules: [thrice(catchUp)] });
      await t.deploy([report], [], []);
      await t.advance("48.5h");
      expect(await t.pawl.schedules.get("thrice")).toMatchObject({ status: "retired", nextAt: null });
      expect(await ledgerOf(t.pawl, "thrice")).toEqual([]);
      await t.deploy([report], [], [thrice(catchUp)]);
      await t.settle();
      expect(await ledgerOf(t.pawl, "thrice")).toEqual(expected.map((line) => line.replace("skipped_late", "retired")));
    });

    test("two weeks off cause no flood, whatever is caught up", async () => {
      const schedules = (["latest", "none", "all"] as const).map((catchUp) =>
        schedule(catchUp, { workflow: report, input: null, every: "1m", catchUp }),
      );
      const t = await start({ schedules });
      down(t, 14 * 24);
      await t.settle();
      const counts = async (name: string) => {
        const { occurrences } = await t.pawl.schedules.occurrences(name, { limit: 1_000 });
        return {
          ran: occurrences.filter(({ outcome }) => outcome === "ran").length,
          all: occurrences.reduce((sum, { count }) => sum + count, 0),
        };
      };
      const all = 14 * 24 * 60;
      expect(await counts("latest")).toEqual({ ran: 1, all });
      expect(await counts("none")).toEqual({ ran: 1, all });
      expect(await counts("all")).toEqual({ ran: 100, all });
      expect(await runsOf(t.pawl, "report")).toHaveLength(102);
    });

    test("several workers that come back at the same time catch up once", async () => {
      const w = await cluster();
      const first = await w.process({ schedules: [thrice("all")] });
      await first.stop();
      w.clock.moveTo(Number(w.clock.now) + 48.5 * 3_600_000);
      const workers = [
        await w.process({ schedules: [thrice("all")] }),
        await w.process({ schedules: [thrice("all")] }),
      ];
      await Promise.all(workers.map(({ settle }) => settle()));
      for (const { settle } of workers) await settle();
      expect(await ledgerOf(w.pawl, "thrice")).toHaveLength(6);
      expect((await runsOf(w.pawl, "report")).map(({ status }) => status)).toEqual(Array(6).fill("completed"));
    });
  },
  briefly("memory", "mysql"),
);
