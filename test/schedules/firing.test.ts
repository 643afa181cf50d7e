/** Each occurrence runs once, at its instant, with the options of its schedule, whatever the processes do. */
import { type ScheduleDefinition, schedule, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { everyStore, forEachStore } from "../support/databases.js";
import { ledgerOf, report, runsOf, schedulesOn, sunday } from "./support/schedule-worlds.js";

const utcDays = (...days: number[]) => days.map((day) => new Date(Date.UTC(2026, 10, day, 2, 30)));
const nightly = schedule("nightly", { workflow: report, input: null, cron: "30 2 * * *" });

forEachStore(
  (kind) => {
    const { start, cluster } = schedulesOn(kind);

    test("a schedule starts a run at each of its instants, with the input that is computed from the instant", async () => {
      const days: unknown[] = [];
      const send = workflow("send", async (_ctx, input: { day: Date }) => void days.push(input.day));
      const daily = schedule("daily", {
        workflow: send,
        input: async ({ scheduledFor }) => ({ day: scheduledFor }),
        cron: "30 2 * * *",
      });
      const t = await start({ workflows: [send], schedules: [daily] });
      await t.advance("3 days");
      expect(days).toEqual(utcDays(2, 3, 4));
      expect(daily.next(3, sunday)).toEqual(days);
      expect(await ledgerOf(t.pawl, "daily")).toEqual([
        "ran 2026-11-02T02:30",
        "ran 2026-11-03T02:30",
        "ran 2026-11-04T02:30",
      ]);
      expect(await t.pawl.schedules.get("daily")).toMatchObject({
        nextFor: utcDays(5)[0],
        nextAt: utcDays(5)[0],
        openRuns: 0,
      });
    });

    test("two schedules with the same rule have occurrences of their own: the key contains the name", async () => {
      const twin = schedule("twin", { workflow: report, input: null, cron: "30 2 * * *" });
      const t = await start({ schedules: [nightly, twin] });
      await t.advance("1 day");
      const [first] = (await t.pawl.schedules.occurrences("nightly")).occurrences;
      const [second] = (await t.pawl.schedules.occurrences("twin")).occurrences;
      expect([first?.outcome, second?.outcome]).toEqual(["ran", "ran"]);
      expect(first?.runId).not.toBe(second?.runId);
      expect(await runsOf(t.pawl, "report")).toHaveLength(2);
    });

    test("workers that fire a schedule at the same time start one run", async () => {
      const w = await cluster();
      const workers = [];
      for (let count = 0; count < 4; count += 1) workers.push(await w.process({ schedules: [nightly] }));
      for (const instant of utcDays(2, 3, 4)) {
        w.clock.moveTo(Number(instant));
        await Promise.all(workers.map((worker) => worker.settle()));
      }
      expect(await ledgerOf(w.pawl, "nightly")).toHaveLength(3);
      expect(await runsOf(w.pawl, "report")).toHaveLength(3);
    });

    test("a worker that leaves in the second of the firing takes no occurrence with it, and leaves none behind twice", async () => {
      const w = await cluster();
      const [leaving, staying] = [await w.process({ schedules: [nightly] }), await w.process({ schedules: [nightly] })];
      w.clock.moveTo(Number(utcDays(2)[0]));
      await Promise.all([leaving.stop(), staying.settle()]);
      await staying.settle();
      const next = await w.process({ schedules: [nightly] });
      await Promise.all([staying.stop(), next.settle()]);
      await next.settle();
      expect(await ledgerOf(w.pawl, "nightly")).toEqual(["ran 2026-11-02T02:30"]);
      expect((await runsOf(w.pawl, "report")).map(({ status }) => status)).toEqual(["completed"]);
    });

    test("a weekly schedule fires although its process restarts daily", async () => {
      const weekly = schedule("weekly", { workflow: report, input: null, every: "7 days" });
      const t = await start({ schedules: [weekly] });
      for (let day = 0; day < 15; day += 1) {
        await t.advance("1 day");
        await t.deploy([report], [], [weekly]);
      }
      expect(await ledgerOf(t.pawl, "weekly")).toEqual(["ran 2026-11-05T00:00", "ran 2026-11-12T00:00"]);
    });

    test("priority, tags, hero and input of the schedule reach the run, beside those of the workflow", async () => {
      class Bill extends Workflow<{ id: string }, { day: number }> {
        static loadHero = (id: string) => ({ id });
        static {
          this.options({ name: "bill", tags: ["money"], priority: 1 });
          this.step("send", () => {});
        }
      }
      const billing = schedule("billing", {
        workflow: Bill,
        input: { day: 1 },
        every: "1h",
        priority: 7,
        tags: ["hourly"],
        hero: { type: "tenant", id: "42" },
      });
      const mail = workflow("mail", { priority: 1, tags: ["money"] }, async (_ctx, _input: { day: number }) => {});
      const t = await start({ workflows: [Bill, mail], schedules: [billing] });
      await t.pawl.schedules.put("plain", { workflow: mail, input: { day: 2 }, every: "1h" });
      await t.advance("1h");
      const [run] = await runsOf(t.pawl, "bill");
      const [plain] = await runsOf(t.pawl, "mail");
      expect(run).toMatchObject({ input: { day: 1 }, priority: 7, hero: { type: "tenant", id: "42" } });
      expect(run?.tags.toSorted()).toEqual(["hourly", "money"]);
      expect(plain).toMatchObject({ input: { day: 2 }, priority: 1, hero: null, tags: ["money"] });
    });

    test("a run that starts late knows its instant and when it was fired", async () => {
      const seen: unknown[] = [];
      const look = workflow("look", async (ctx) => void seen.push(ctx.schedule));
      const t = await start({ workflows: [look], schedules: [schedule("looks", { workflow: look, every: "1h" })] });
      t.clock.moveTo(Number(sunday) + 3_600_000 + 1_234);
      await t.settle();
      const scheduledFor = new Date("2026-11-01T13:00:00Z");
      const firedAt = new Date(Number(scheduledFor) + 1_234);
      expect(seen).toEqual([{ name: "looks", scheduledFor, firedAt, missed: 0, manual: false, backfill: false }]);
      const [row] = (await t.pawl.schedules.occurrences("looks")).occurrences;
      expect(row).toMatchObject({ scheduledFor, at: firedAt, latenessMs: 1_234 });
    });

    test("jitter delays a run by the same time in every process, and does not change its identity", async () => {
      const jittered = schedule("jittered", { workflow: report, input: null, every: "1h", jitter: "59m" });
      const w = await cluster();
      const workers = [await w.process({ schedules: [jittered] }), await w.process({ schedules: [jittered] })];
      const { nextAt, nextFor } = await w.pawl.schedules.put("spread", {
        workflow: "report",
        every: "1h",
        jitter: "59m",
      });
      const { nextAt: dueAt } = await w.pawl.schedules.get("jittered");
      expect(nextFor).toEqual(new Date("2026-11-01T13:00:00Z"));
      expect(nextAt).not.toEqual(dueAt);
      w.clock.moveTo(Number(dueAt) - 1);
      for (const { settle } of workers) await settle();
      expect(await ledgerOf(w.pawl, "jittered")).toEqual([]);
      w.clock.moveTo(Number(dueAt));
      for (const { settle } of workers) await settle();
      const { occurrences } = await w.pawl.schedules.occurrences("jittered");
      expect(occurrences).toMatchObject([{ outcome: "ran", scheduledFor: nextFor, at: dueAt, latenessMs: 0 }]);
    });

    test("the default zone is UTC, not that of the process", async () => {
      const zone = process.env.TZ;
      process.env.TZ = "America/New_York";
      try {
        expect(new Date(2026, 10, 2).toISOString()).toBe("2026-11-02T05:00:00.000Z");
        const local = schedule("local", { workflow: report, input: null, cron: "30 2 * * *" });
        const t = await start({ schedules: [local] });
        await t.advance("1 day");
        expect(await ledgerOf(t.pawl, "local")).toEqual(["ran 2026-11-02T02:30"]);
        expect((await t.pawl.schedules.get("local")).timeZone).toBe("UTC");
      } finally {
        if (zone === undefined) delete process.env.TZ;
        else process.env.TZ = zone;
      }
    });

    const inBerlin = (name: string, cron: string, more: Partial<Parameters<typeof schedule>[1]> = {}) =>
      schedule(name, { workflow: report, input: null, cron, timeZone: "Europe/Berlin", ...more } as never);

    test.each<[string, ScheduleDefinition, string, string[]]>([
      // At 01:00 UTC the clocks of Berlin go from 02:00 to 03:00, or from 03:00 back to 02:00.
      [
        "a daily time in the gap runs once, at its end",
        inBerlin("gap", "30 2 * * *"),
        "2026-03-28T23:00:00Z",
        ["01:00"],
      ],
      [
        "a daily time in the gap can be left out",
        inBerlin("skips", "30 2 * * *", { gap: "skip" }),
        "2026-03-28T23:00:00Z",
        [],
      ],
      [
        "a daily time that comes twice runs once, the first time",
        inBerlin("first", "30 2 * * *"),
        "2026-10-24T22:00:00Z",
        ["00:30"],
      ],
      ["or the second time", inBerlin("second", "30 2 * * *", { repeat: "second" }), "2026-10-24T22:00:00Z", ["01:30"]],
      ["or both times", inBerlin("both", "30 2 * * *", { repeat: "both" }), "2026-10-24T22:00:00Z", ["00:30", "01:30"]],
      [
        "an hourly one runs each real hour",
        inBerlin("hourly", "0 * * * *"),
        "2026-10-24T23:30:00Z",
        ["00:00", "01:00", "02:00", "03:00", "04:00"],
      ],
      [
        "also in spring",
        inBerlin("spring", "0 * * * *"),
        "2026-03-28T23:30:00Z",
        ["00:00", "01:00", "02:00", "03:00", "04:00"],
      ],
    ])("when the clocks change, %s", async (_, definition, from, expected) => {
      const t = await start({ schedules: [definition], startAt: new Date(from) });
      await t.advance("5h");
      const times = (await ledgerOf(t.pawl, definition.name)).map((line) => line.slice(-5));
      expect(times).toEqual(expected);
    });
  },
  [...everyStore],
);
