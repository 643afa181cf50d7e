/** What a person does to a schedule: put, trigger, backfill, delete. */
import { schedule, workflow } from "pawl";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { errorOf } from "../support/waiting.js";
import { ledgerOf, report, runsOf, schedulesOn, waiting } from "./support/schedule-worlds.js";

const at = (time: string) => new Date(`2026-11-${time}:00Z`);
/** At noon of each day; the tests begin at that of November 1st. */
const daily = schedule("daily", { workflow: report, input: null, cron: "0 12 * * *" });
const hourly = { workflow: "report", input: null, every: "1h" } as const;

forEachStore((kind) => {
  const { start, cluster } = schedulesOn(kind);

  test("two puts at once leave one schedule, and none vanishes", async () => {
    const t = await start({ schedules: [] });
    const names = ["a", "b", "c"];
    const puts = names.flatMap((name) =>
      [1, 2, 3, 4].map((id) => t.pawl.schedules.put(name, { ...hourly, input: { id } })),
    );
    for (const info of await Promise.all(puts)) expect(info.status).toBe("active");
    const { schedules } = await t.pawl.schedules.list();
    expect(schedules.map(({ name }) => name)).toEqual(names);
    await t.advance("1h");
    for (const name of names) expect(await ledgerOf(t.pawl, name)).toEqual(["ran 2026-11-01T13:00"]);
    const ids = (await runsOf(t.pawl, "report")).map(({ input }) => (input as { id: number }).id);
    expect(ids.every((id) => [1, 2, 3, 4].includes(id))).toBe(true);
  });

  test("a changed rule does not fire for the past, and an unchanged one keeps what is due", async () => {
    const t = await start({ schedules: [] });
    for (const name of ["changed", "same"]) await t.pawl.schedules.put(name, hourly);
    t.clock.moveTo(Number(at("01T14:30")));
    await t.pawl.schedules.put("changed", { ...hourly, every: "30m" });
    await t.pawl.schedules.put("same", { ...hourly, tags: ["new"] });
    await t.settle();
    expect(await ledgerOf(t.pawl, "changed")).toEqual([]);
    expect(await ledgerOf(t.pawl, "same")).toEqual(["skipped_late 2026-11-01T13:00", "ran 2026-11-01T14:00, missed 1"]);
    await t.advance("30m");
    expect(await ledgerOf(t.pawl, "changed")).toEqual(["ran 2026-11-01T15:00"]);
  });

  test("a changed rule in the code does not fire for the past either", async () => {
    const t = await start({ schedules: [daily] });
    t.clock.moveTo(Number(at("04T00:00")));
    await t.deploy([report], [], [schedule("daily", { workflow: report, input: null, cron: "0 6 * * *" })]);
    await t.settle();
    expect(await ledgerOf(t.pawl, "daily")).toEqual([]);
    await t.advance("6h");
    expect(await ledgerOf(t.pawl, "daily")).toEqual(["ran 2026-11-04T06:00"]);
  });

  test("a schedule that is deleted and put again has new identities, and its old ledger stays", async () => {
    const t = await start({ schedules: [] });
    await t.pawl.schedules.put("again", { ...hourly, workflow: "waiting", overlap: "bufferOne" });
    await t.advance("2h");
    await t.pawl.schedules.delete("again");
    expect((await errorOf(t.pawl.schedules.get("again"))).code).toBe("SCHEDULE_NOT_FOUND");
    // Its run goes on, and what waits for it does not start.
    expect(await ledgerOf(t.pawl, "again")).toEqual(["ran 2026-11-01T13:00", "retired 2026-11-01T14:00"]);
    await t.pawl.schedules.put("again", hourly);
    const { instants } = await t.pawl.schedules.backfill("again", { from: at("01T13:00") });
    expect(instants).toEqual([at("01T13:00"), at("01T14:00")]);
    await t.settle();
    const { occurrences } = await t.pawl.schedules.occurrences("again");
    expect(new Set(occurrences.map(({ id }) => id)).size).toBe(4);
    expect(await runsOf(t.pawl, "report")).toHaveLength(2);
    const [old] = await runsOf(t.pawl, "waiting");
    expect(old?.status).toBe("waiting");
    await t.pawl.run(old?.id as string).signal("go");
    await t.settle();
    expect(await t.pawl.schedules.get("again")).toMatchObject({ openRuns: 0, waiting: 0 });
  });

  test("a trigger runs now, does not move the next occurrence, and says who asked for it", async () => {
    const t = await start({ schedules: [daily] });
    await t.clock.moveTo(Number(at("01T18:00")));
    const occurrence = await t.pawl.schedules.trigger("daily", { by: "ada", reason: "once more" });
    expect(occurrence).toMatchObject({
      outcome: "ran",
      manual: true,
      by: "ada",
      reason: "once more",
      scheduledFor: at("01T18:00"),
    });
    await t.settle();
    expect(await t.pawl.run(occurrence.runId as string).status()).toBe("completed");
    expect(await t.pawl.schedules.get("daily")).toMatchObject({ nextFor: at("02T12:00"), acceptedRuns: 0 });
    const second = await t.pawl.schedules.trigger("daily");
    expect(second.id).not.toBe(occurrence.id);
  });

  test("a trigger obeys overlap, unless it is forced, and works while the schedule is paused", async () => {
    const t = await start({ schedules: [schedule("held", { workflow: waiting, input: null, every: "1h" })] });
    await t.pawl.schedules.pause("held");
    expect((await t.pawl.schedules.trigger("held")).outcome).toBe("ran");
    expect((await t.pawl.schedules.trigger("held")).outcome).toBe("skipped_overlap");
    expect((await t.pawl.schedules.trigger("held", { force: true })).outcome).toBe("ran");
    expect(await t.pawl.schedules.get("held")).toMatchObject({ status: "paused", openRuns: 2 });
  });

  test("a trigger from a process without the code is started by a worker that has it, also while the schedule is paused", async () => {
    const computed = schedule("computed", { workflow: report, input: ({ manual }) => ({ manual }), every: "1h" });
    const w = await cluster();
    const { settle } = await w.process({ schedules: [computed] });
    const { id, outcome, runId } = await w.pawl.schedules.trigger("computed");
    expect({ outcome, runId }).toEqual({ outcome: "requested", runId: null });
    await w.pawl.schedules.pause("computed");
    await settle();
    expect((await w.pawl.run(id).get()).input).toEqual({ manual: true });
  });

  test("a backfill runs what has not run, one after another and the oldest first, beside the regular runs", async () => {
    const log: string[] = [];
    const slow = workflow("slow", async (ctx) => {
      const day = ctx.schedule?.scheduledFor.toISOString().slice(5, 10);
      await ctx.step("begin", () => void log.push(`${day} begins, backfill: ${ctx.schedule?.backfill}`));
      await ctx.sleep("work", "10s");
      await ctx.step("end", () => void log.push(`${day} ends`));
    });
    const slowly = schedule("daily", { workflow: slow, cron: "0 12 * * *" });
    const t = await start({ workflows: [slow, report], schedules: [slowly] });
    const dry = await t.pawl.schedules.backfill("daily", { from: at("01T00:00"), to: at("01T12:00"), dryRun: true });
    expect(dry).toEqual({ instants: [at("01T12:00")], alreadyDone: 0 });
    expect(await ledgerOf(t.pawl, "daily")).toEqual([]);
    const { instants } = await t.pawl.schedules.backfill("daily", { from: new Date("2026-10-30T00:00:00Z") });
    expect(instants).toHaveLength(3);
    await t.advance("1m");
    const linesOf = (day: string) => [`${day} begins, backfill: true`, `${day} ends`];
    expect(log).toEqual(["10-30", "10-31", "11-01"].flatMap(linesOf));
    expect(await t.pawl.schedules.get("daily")).toMatchObject({
      nextFor: at("02T12:00"),
      backfillWaiting: 0,
      openRuns: 0,
    });
    const again = await t.pawl.schedules.backfill("daily", { from: new Date("2026-10-30T00:00:00Z"), dryRun: true });
    expect(again).toEqual({ instants: [], alreadyDone: 3 });
  });

  test("identities outlive the runs: a backfill starts nothing that has run and was pruned", async () => {
    const t = await start({ schedules: [daily] });
    await t.advance("2 days");
    await t.advance("40 days");
    const { runs } = await t.pawl.prune({ olderThan: "1 day" });
    expect(runs).toBeGreaterThan(30);
    const all = await t.pawl.schedules.backfill("daily", { from: at("02T00:00") });
    expect(all).toEqual({ instants: [], alreadyDone: 42 });
  });

  test.each(["latest", "all"] as const)(
    "a backfill of what the schedule has not caught up yet runs it once: %s",
    async (catchUp) => {
      const t = await start({
        schedules: [schedule("daily", { workflow: report, input: null, cron: "0 12 * * *", catchUp })],
      });
      await t.pawl.schedules.pause("daily");
      t.clock.moveTo(Number(at("03T13:00")));
      expect((await t.pawl.schedules.backfill("daily", { from: at("03T00:00") })).instants).toEqual([at("03T12:00")]);
      await t.pawl.schedules.resume("daily");
      await t.settle();
      await t.advance("1h");
      const skippedOrRun = catchUp === "latest" ? "paused 2026-11-02T12:00" : "ran 2026-11-02T12:00";
      expect(await ledgerOf(t.pawl, "daily")).toEqual([skippedOrRun, "ran 2026-11-03T12:00, backfill"]);
      expect(await runsOf(t.pawl, "report")).toHaveLength(catchUp === "latest" ? 1 : 2);
      await t.advance("1 day");
      expect((await ledgerOf(t.pawl, "daily")).at(-1)).toBe("ran 2026-11-04T12:00");
    },
  );

  test("a backfill tries again what failed to start, and has no more than 10,000 occurrences", async () => {
    let isBroken = true;
    const fragile = schedule("fragile", {
      workflow: report,
      input: () => {
        if (isBroken) throw new Error("The price list is missing.");
        return {};
      },
      cron: "0 12 * * *",
    });
    const t = await start({ schedules: [fragile] });
    await t.advance("2 days");
    expect(await ledgerOf(t.pawl, "fragile")).toEqual([
      "failed_to_start 2026-11-02T12:00",
      "failed_to_start 2026-11-03T12:00",
    ]);
    isBroken = false;
    await t.pawl.schedules.backfill("fragile", { from: at("02T00:00") });
    await t.settle();
    expect(await ledgerOf(t.pawl, "fragile")).toEqual([
      "ran 2026-11-02T12:00, backfill",
      "ran 2026-11-03T12:00, backfill",
    ]);
    const { message } = await errorOf(t.pawl.schedules.backfill("fragile", { from: new Date("1980-01-01T00:00:00Z") }));
    expect(message).toContain("has more than 10,000 occurrences");
  });

  test("a retired schedule can be neither triggered nor backfilled, and its backfill goes on when it is back", async () => {
    const computed = schedule("computed", { workflow: waiting, input: () => null, cron: "0 12 * * *" });
    const t = await start({ schedules: [computed] });
    await t.pawl.schedules.backfill("computed", { from: new Date("2026-10-31T00:00:00Z") });
    await t.settle();
    await t.deploy([waiting], [], []);
    expect((await errorOf(t.pawl.schedules.trigger("computed"))).message).toContain(
      "cannot be triggered: it is retired",
    );
    expect((await errorOf(t.pawl.schedules.backfill("computed", { from: 0 }))).message).toContain("it is retired");
    const [run] = await runsOf(t.pawl, "waiting");
    await t.pawl.run(run?.id as string).signal("go");
    await t.settle();
    expect(await t.pawl.schedules.get("computed")).toMatchObject({ openRuns: 0, backfillWaiting: 1 });
    await t.deploy([waiting], [], [computed]);
    await t.settle();
    expect(await t.pawl.schedules.get("computed")).toMatchObject({ openRuns: 1, backfillWaiting: 0 });
  });
});
