import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const day = 86_400_000;

describe("ctx.sleep", () => {
  test.each([
    ["40 days", 40 * day],
    ["1h 30m", 5_400_000],
    [{ weeks: 2, hours: 1 }, 14 * day + 3_600_000],
    ["36525 days", 36_525 * day],
    [250, 250],
  ])("of %o wakes exactly then, and not earlier", async (duration, ms) => {
    const wf = workflow("sleeper", async (ctx) => {
      await ctx.sleep("nap", duration);
      return ctx.now().getTime();
    });
    const t = await start(wf);
    const begin = t.clock.read();
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "waiting", waitingFor: [{ kind: "sleep", name: "nap" }] });
    await t.speedrun(run);
    expect((await run.result()) - begin).toBe(ms);
  });

  test("does not end a millisecond early", async () => {
    const wf = workflow("punctual", (ctx) => ctx.sleep("nap", "40 days"));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.advance(40 * day - 1);
    expect(await run.status()).toBe("waiting");
    await t.advance(1);
    expect(await run.status()).toBe("completed");
  });

  test("of no time continues at once", async () => {
    expect(
      await outputOf(
        workflow("zero", (ctx) => ctx.sleep("none", 0).then(() => "on")),
        undefined,
      ),
    ).toBe("on");
  });

  test("starts when it is called: two in sequence add up, two in parallel do not", async () => {
    const wf = workflow("sums", async (ctx) => {
      await ctx.sleep("a", "1 day");
      await ctx.sleep("b", "1 day");
      await Promise.all([ctx.sleep("c", "1 day"), ctx.sleep("d", "3 days")]);
      return ctx.now().getTime();
    });
    const t = await start(wf);
    const begin = t.clock.read();
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await run.result()) - begin).toBe(5 * day);
  });

  test("survives the death of its worker and is not restarted by the next one", async () => {
    const wf = workflow("survivor", (ctx) => ctx.sleep("nap", "10 days"));
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    const due = await first.settle();
    await first.kill();
    w.clock.moveTo(w.clock.read() + 6 * day);
    const second = await w.worker([wf]);
    expect(await second.settle()).toBe(due);
    w.clock.moveTo(due as number);
    await second.settle();
    expect(await run.status()).toBe("completed");
    expect((await logOf(run)).filter((line) => line === "timer.started nap")).toHaveLength(1);
  });

  test.each([-1, Number.NaN, "soon", "5 parsecs", "", null, {}, { fortnights: 1 }, "2000 years"])(
    "of %o is refused",
    async (duration) => {
      const wf = workflow("refused", (ctx) => ctx.sleep("nap", duration as never));
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.settle();
      expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ code: "INVALID_INPUT" });
    },
  );

  test("frees the worker: a thousand sleeping runs leave nothing in its memory", async () => {
    const wf = workflow("many", (ctx) => ctx.sleep("nap", "1 day").then(() => 1));
    const w = await world();
    const { worker, settle } = await w.worker([wf]);
    const runs = await w.pawl.startMany(wf, Array(1_000).fill(undefined));
    const due = await settle();
    expect(worker.active).toBe(0);
    w.clock.moveTo(due as number);
    await settle();
    w.clock.moveTo(w.clock.read() + day);
    await settle();
    const statuses = await Promise.all(runs.map((run) => run.status()));
    expect(new Set(statuses)).toEqual(new Set(["completed"]));
  });
});

describe("ctx.sleepUntil", () => {
  test("wakes at that instant, given as a date or as milliseconds", async () => {
    const wf = workflow("until", async (ctx, { date, ms }: { date: Date; ms: number }) => {
      await ctx.sleepUntil("date", date);
      const first = ctx.now().getTime();
      await ctx.sleepUntil("ms", ms);
      return [first, ctx.now().getTime()];
    });
    const t = await start(wf);
    const at = t.clock.read() + 50 * day;
    const run = await t.pawl.start(wf, { date: new Date(at), ms: at + 7 });
    await t.speedrun(run);
    expect(await run.result()).toEqual([at, at + 7]);
  });

  test("of a past instant continues at once", async () => {
    expect(
      await outputOf(
        workflow("past", (ctx) => ctx.sleepUntil("past", new Date(0)).then(() => "on")),
        undefined,
      ),
    ).toBe("on");
  });

  test("accepts a fraction of a millisecond", async () => {
    const wf = workflow("fraction", (ctx) => ctx.sleepUntil("f", ctx.now().getTime() + 1_000.5).then(() => "on"));
    expect(await outputOf(wf, undefined)).toBe("on");
  });

  test.each([new Date(Number.NaN), Number.POSITIVE_INFINITY, "tomorrow"])("of %o is refused", async (date) => {
    const wf = workflow("invalid", (ctx) => ctx.sleepUntil("never", date as never));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("ctx.now, ctx.random and ctx.uuid", () => {
  test("are the same on replay", async () => {
    const seen: unknown[][] = [];
    const wf = workflow("steady", async (ctx) => {
      const values: unknown[] = [ctx.now().getTime(), ctx.random(), ctx.uuid()];
      seen.push(values);
      await ctx.step("a", () => 1);
      values.push(ctx.now().getTime(), ctx.random());
      await ctx.sleep("nap", "1 day");
      values.push(ctx.now().getTime(), ctx.random(), ctx.uuid());
      await ctx.waitForSignal("never", { timeout: "1 day" });
      values.push(ctx.now().getTime(), ctx.uuid());
      return values;
    });
    const result = await outputOf(wf, undefined);
    expect(seen.length).toBeGreaterThan(2);
    for (const values of seen) expect(result.slice(0, values.length)).toEqual(values);
    expect((result[5] as number) - (result[3] as number)).toBe(day);
  });

  test("differ between runs, and uuids are uuids", async () => {
    const wf = workflow("distinct", async (ctx) => [ctx.random(), ctx.uuid(), ctx.random(), ctx.uuid()]);
    const t = await start(wf);
    const runs = await t.pawl.startMany(wf, [undefined, undefined]);
    await t.settle();
    const all = (await Promise.all(runs.map((run) => run.result()))).flat();
    expect(new Set(all).size).toBe(8);
    for (const value of all) {
      if (typeof value === "string")
        expect(value).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      else expect(value >= 0 && value < 1).toBe(true);
    }
  });
});

describe("a workflow's time limit", () => {
  test("fails a run that waits too long, with a TimeoutError that says so", async () => {
    const wf = workflow("limited", { timeout: "2 days" }, async (ctx) => {
      await ctx.waitForSignal("never");
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.advance(2 * day - 1);
    expect(await run.status()).toBe("waiting");
    await t.advance(1);
    expect(await run.status()).toBe("failed");
    const error = await errorOf(run.result());
    expect(error.cause).toMatchObject({ name: "TimeoutError", code: "TIMEOUT" });
    expect((await run.get()).error).toMatchObject({ code: "TIMEOUT" });
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("counts from the first step, not from the start of a delayed run", async () => {
    const wf = workflow("delayed", { timeout: "1 hour" }, async (ctx) => {
      await ctx.sleep("short", "30m");
      return "done";
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined, { delay: "10 days" });
    await t.speedrun(run);
    expect(await run.result()).toBe("done");
  });

  test("is not extended by steps that ended in time", async () => {
    const wf = workflow("not-extended", { timeout: "1 hour" }, async (ctx) => {
      for (let nap = 0; nap < 10; nap += 1) await ctx.sleep("nap", "10m");
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.speedrun(run);
    expect(await run.status()).toBe("failed");
  });

  test("aborts a step that runs too long", async () => {
    const aborted = gate();
    const wf = workflow("busy", { timeout: 50 }, async (ctx) => {
      await ctx.step("endless", ({ abortSignal }) => {
        abortSignal.addEventListener("abort", () => aborted.open());
        return new Promise(() => {});
      });
    });
    const { Pawl } = await import("pawl");
    const { openStore } = await import("../support/databases.js");
    const pawl = new Pawl(await openStore("memory", "memory:"));
    await pawl.worker({ workflows: [wf] }).start();
    const run = await pawl.start(wf, undefined);
    await aborted.opened;
    expect((await errorOf(run.result())).cause).toMatchObject({ code: "TIMEOUT" });
    await pawl.close();
  });

  test("of a child reaches the parent as a RunFailedError whose cause is the TimeoutError", async () => {
    const child = workflow("slow-child", { timeout: "1 hour" }, async (ctx) => {
      await ctx.sleep("too_long", "1 day");
    });
    const parent = workflow("parent", async (ctx) => {
      try {
        await ctx.run(child, undefined);
        return "completed";
      } catch (error) {
        return [(error as Error).name, ((error as Error).cause as Error).name];
      }
    });
    expect(await outputOf(parent, undefined, [child])).toEqual(["RunFailedError", "TimeoutError"]);
  });
});

describe("progress", () => {
  test("of the run and of a step is visible while it runs, only the latest value", async () => {
    const progressSeen = gate();
    const finish = gate();
    const wf = workflow("progressing", async (ctx) => {
      ctx.progress(1, 3, "one of three");
      await ctx.step("longer", async (step) => {
        step.progress(10, 20);
        step.progress(15, 20, "nearly");
        progressSeen.open();
        await finish.opened;
      });
      ctx.progress(3, 3);
      return 1;
    });
    const w = await world();
    await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await progressSeen.opened;
    await until(async () => (await run.progress()).some((row) => row.node === "longer"));
    const rows = await run.progress();
    expect(rows.find((row) => row.node === "")).toMatchObject({ done: 1, total: 3, message: "one of three" });
    expect(rows.find((row) => row.node === "longer")).toMatchObject({ done: 15, total: 20, message: "nearly" });
    finish.open();
    await run.result({ timeout: "100s" });
    expect((await run.progress()).find((row) => row.node === "")).toMatchObject({ done: 3, total: 3 });
  });

  test("may be destructured from the step's context", async () => {
    const wf = workflow("destructured", (ctx) =>
      ctx.step("long", ({ progress, log }) => {
        progress(1, 2);
        log.info("half way");
        return "done";
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
    expect(await run.progress()).toMatchObject([{ node: "long", done: 1, total: 2 }]);
  });
});
