/** Runs that must begin by an instant: `startBy`. */
import { graph, limit, type RunHandle, step, Workflow, workflow } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const minute = 60_000;

const report = workflow("report", { startBy: "10m" }, async (ctx, name: string) => ctx.step("write", () => name));
const other = workflow("other", async (ctx) => ctx.step("work", () => "done"));

class Reminder extends Workflow<null, void, string> {
  static {
    this.options({ name: "reminder", startBy: "10m", mayProceedWithoutHero: true });
    this.step("remind", () => {});
  }
}
const drawn = graph("drawn", [step("draw", async () => "drawn")], { startBy: "10m" });

/** Pawl whose worker has none of these workflows: nothing executes their runs. */
async function withoutWorker(store = "memory:"): Promise<TestPawl> {
  const t = await testPawl({ workflows: [other], logger: silent, store });
  onTestFinished(() => t.close());
  return t;
}

const deadlinesOf = async (t: TestPawl) =>
  (await t.pawl.internals.store.maintenance.startDeadlines.earliest(100))?.deadlines ?? [];

async function expectExpired(run: RunHandle<any, any>): Promise<void> {
  const info = await run.get();
  expect(info).toMatchObject({
    status: "canceled",
    startedAt: null,
    error: { name: "RunCanceledError", code: "EXPIRED" },
  });
  expect(info.error?.message).toMatch(/^It had not begun by \d{4}-.*Z, as its startBy demands$/);
  expect(await errorOf(run.result())).toMatchObject({ name: "RunCanceledError", code: "EXPIRED", runId: run.id });
  const log = await run.history();
  expect(log.at(-1)).toMatchObject({ type: "run.canceled", data: { code: "EXPIRED" } });
  expect((await run.explain()).text).toContain("It had not begun by");
}

describe("startBy:", () => {
  forEachStore((kind) => {
    test("a run that has not begun by then is canceled with code EXPIRED", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const t = await withoutWorker(url);
      const run = await t.pawl.start(report, "a");
      const explanation = await run.explain();
      expect(explanation.expiresAt).toEqual(new Date(t.clock.read() + 10 * minute));
      expect(explanation.text).toContain(
        `If it has not begun by ${explanation.expiresAt?.toISOString()}, it is canceled.`,
      );
      await t.advance("9m");
      expect(await run.status()).toBe("pending");
      await t.advance("1m");
      await expectExpired(run);
      expect(await deadlinesOf(t)).toEqual([]);
      expect((await t.pawl.verify()).differences).toEqual([]);
    });

    test("a run that has begun is left alone, and its row is removed", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const long = workflow("long", { startBy: "10m" }, async (ctx) => void (await ctx.sleep("night", "1h")));
      const t = await testPawl({ workflows: [long], logger: silent, store: url });
      onTestFinished(() => t.close());
      const run = await t.pawl.start(long);
      await t.settle();
      expect(await deadlinesOf(t)).toHaveLength(1);
      await t.advance("10m");
      expect(await deadlinesOf(t)).toEqual([]);
      await t.advance("1h");
      expect(await run.status()).toBe("completed");
      expect((await t.pawl.verify()).differences).toEqual([]);
    });

    test("the start option overrides that of the workflow, as a duration or a date, and counts from a delay", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const t = await withoutWorker(url);
      const now = t.clock.read();
      const inHalfAnHour = new Date(now + 30 * minute);
      const runs = await Promise.all([
        t.pawl.start(report, "a", { startBy: "20m" }),
        t.pawl.start(report, "a", { startBy: inHalfAnHour }),
        t.pawl.start(report, "a", { delay: "1h" }),
        t.pawl.start(report, "a", { startAt: new Date(now + 60 * minute), startBy: "1m" }),
      ]);
      const many = await t.pawl.startMany(report, ["b", "c"]);
      const named = await t.pawl.workflow<string>("report").trigger("d");
      await t.pawl.start(other);
      const instants = new Map((await deadlinesOf(t)).map(({ runId, at }) => [runId, (at - now) / minute]));
      expect([...runs, ...many, named].map(({ id }) => instants.get(id))).toEqual([20, 30, 70, 61, 10, 10, 10]);
      expect(instants.size).toBe(7);
    });

    test("prune removes the row of a run that ended before its deadline", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const t = await testPawl({ workflows: [report], logger: silent, store: url });
      onTestFinished(() => t.close());
      await t.pawl.start(report, "a", { startBy: "30 days" });
      await t.advance("2 hours");
      expect(await deadlinesOf(t)).toHaveLength(1);
      expect(await t.pawl.prune({ olderThan: "1 hour" })).toMatchObject({ runs: 1 });
      expect(await deadlinesOf(t)).toEqual([]);
    });

    test("a parent that waits for a child that expired is told, and goes on", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const parent = workflow("parent", async (ctx) => {
        try {
          return await ctx.run(report, "a");
        } catch (error) {
          return (error as { code: string }).code;
        }
      });
      const t = await testPawl({ workflows: [parent], logger: silent, store: url });
      onTestFinished(() => t.close());
      const run = await t.pawl.start(parent);
      await t.advance("11m");
      expect(await run.result()).toBe("EXPIRED");
    });
  }, everyStoreBriefly);

  test("holds for classes and graphs", async () => {
    const t = await withoutWorker();
    const runs = [await t.pawl.start(Reminder), await t.pawl.start(drawn)];
    await t.advance("10m");
    for (const run of runs) await expectExpired(run);
  });

  test("a run that was paused before it began expires, too", async () => {
    const t = await start(report);
    const run = await t.pawl.start(report, "a", { delay: "1m" });
    await run.pause("not now");
    await t.advance("11m");
    await expectExpired(run);
  });

  test("a run that waits for a slot of a limit expires, and what has a slot goes on", async () => {
    const one = limit("one", { concurrency: 1 });
    const done = gate();
    const limited = workflow("limited", { limits: [one], startBy: "10m" }, (ctx) =>
      ctx.step("work", () => done.opened),
    );
    const w = await world();
    const { worker } = await w.worker([limited]);
    const first = await w.pawl.start(limited);
    await until(async () => (await first.status()) === "running");
    const second = await w.pawl.start(limited);
    w.clock.moveTo(w.clock.read() + 10 * minute);
    await (await w.worker([other])).settle();
    await expectExpired(second);
    done.open();
    await worker.runUntilIdle();
    expect(await first.status()).toBe("completed");
  });

  test("durations of nothing, and dates that are none, are refused", async () => {
    const t = await start(report);
    expect(() => workflow("bad", { startBy: 0 }, () => {})).toThrow("must be longer than 0 ms");
    expect(await errorOf(t.pawl.start(report, "a", { startBy: "0s" }))).toMatchObject({ code: "INVALID_INPUT" });
    expect(await errorOf(t.pawl.start(report, "a", { startBy: new Date(Number.NaN) }))).toMatchObject({
      code: "INVALID_INPUT",
    });
  });
});
