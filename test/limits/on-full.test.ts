/** Rule 7: what becomes of runs that find their limit full (`onFull`, `backlog`). */
import { graph, LimitFullError, limit, RunCanceledError, RunFailedError, step, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { everyStore, forEachStore } from "../support/databases.js";
import { expectSound } from "../support/run-checks.js";
import { databaseFor, keepWorking, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

type Options = Omit<Parameters<typeof limit>[1], "concurrency">;

/** A workflow whose runs wait in their first step until the test lets them go on. */
function gated(options: Options & { readonly concurrency?: number }) {
  const { open, opened } = gate();
  onTestFinished(() => open());
  const begun: string[] = [];
  const one = limit("one", { concurrency: 1, ...options });
  const wf = workflow("wf", { limits: [one] }, async (ctx, name: string) => {
    await ctx.step("work", async ({ abortSignal }) => {
      begun.push(name);
      await Promise.race([
        opened,
        new Promise((_, reject) => abortSignal.addEventListener("abort", () => reject(abortSignal.reason))),
      ]);
    });
    return name;
  });
  return { wf, begun, open };
}

describe("onFull:", () => {
  forEachStore((kind) => {
    const database = databaseFor(kind);

    test("skip cancels the run before it begins, with a code, a reason and a log", async () => {
      const { wf, begun, open } = gated({ onFull: "skip" });
      const w = await database.world();
      keepWorking(await w.worker([wf]), await w.worker([wf]));
      const first = await w.pawl.start(wf, "first");
      await until(() => begun.length === 1);
      const second = await w.pawl.start(wf, "second");
      await until(async () => (await second.status()) === "canceled");
      expect(await second.get()).toMatchObject({
        startedAt: null,
        error: { name: "RunCanceledError", code: "LIMIT_SKIPPED", message: 'The limit "one" was full' },
      });
      expect((await second.history()).map(({ type }) => type)).toEqual(["run.cancel_requested", "run.canceled"]);
      const error = await errorOf(second.result());
      expect(error).toBeInstanceOf(RunCanceledError);
      expect(error).toMatchObject({ code: "LIMIT_SKIPPED", reason: 'The limit "one" was full' });
      open();
      expect(await first.result()).toBe("first");
      expect(await (await w.pawl.start(wf, "third")).result()).toBe("third");
      expect(begun).toEqual(["first", "third"]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("fail ends the run with a typed error, and calls onFailure", async () => {
      const told: unknown[] = [];
      const { begun, open, wf: other } = gated({ key: "input", onFull: "fail" });
      const wf = workflow(
        "calls",
        { limits: other.limits, onFailure: ({ error }) => void told.push(error) },
        (ctx, name: string) => other.handler(ctx, name),
      );
      const w = await database.world();
      keepWorking(await w.worker([wf]));
      const first = await w.pawl.start(wf, "a");
      await until(() => begun.length === 1);
      const second = await w.pawl.start(wf, "a");
      const error = await errorOf(second.result());
      expect(error).toBeInstanceOf(RunFailedError);
      const cause = (error as RunFailedError).cause;
      expect(cause).toBeInstanceOf(LimitFullError);
      expect(cause).toMatchObject({ code: "LIMIT_FULL", limit: "one", key: "a" });
      expect(await second.get()).toMatchObject({ status: "failed", error: { code: "LIMIT_FULL" } });
      expect(told).toEqual([cause]);
      open();
      await first.result();
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("cancelOldest cancels the run that holds the slot, and the new one begins when it has ended", async () => {
      const { wf, begun, open } = gated({ onFull: "cancelOldest" });
      const w = await database.world();
      keepWorking(await w.worker([wf]), await w.worker([wf]));
      const first = await w.pawl.start(wf, "first");
      await until(() => begun.length === 1);
      const second = await w.pawl.start(wf, "second");
      const error = await errorOf(first.result());
      expect(error).toMatchObject({ code: "LIMIT_SUPERSEDED", reason: expect.stringContaining(second.id) });
      await until(() => begun.includes("second"));
      open();
      expect(await second.result()).toBe("second");
      expect((await first.history()).map(({ type }) => type)).toContain("run.cancel_requested");
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("backlog: so many runs wait before the limit is full", async () => {
      const { wf, begun, open } = gated({ onFull: "skip", backlog: 2 });
      const w = await database.world();
      keepWorking(await w.worker([wf]), await w.worker([wf]));
      const runs = [await w.pawl.start(wf, "0")];
      await until(() => begun.length === 1);
      for (const name of ["1", "2", "3", "4"]) {
        w.clock.moveTo(w.clock.read() + 1);
        const run = await w.pawl.start(wf, name);
        runs.push(run);
        await until(async () => {
          const { because } = await run.explain();
          return because === "limited" || because === "ended";
        });
      }
      open();
      await until(async () => (await runs[2]?.status()) === "completed");
      expect(await Promise.all(runs.map((run) => run.status()))).toEqual([
        "completed",
        "completed",
        "completed",
        "canceled",
        "canceled",
      ]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });
  }, everyStore);

  test("a burst in one batch leaves exactly as many runs as have room", async () => {
    const { wf, begun, open } = gated({ concurrency: 3, onFull: "skip", backlog: 2 });
    const w = await world();
    keepWorking(await w.worker([wf]), await w.worker([wf]));
    const runs = await w.pawl.startMany(
      wf,
      Array.from({ length: 40 }, (_, n) => `${n}`),
    );
    const ofStatus = async (status: string) =>
      (await Promise.all(runs.map((run) => run.status()))).filter((found) => found === status).length;
    await until(async () => (await ofStatus("canceled")) === 35);
    expect(begun).toHaveLength(3);
    open();
    await until(async () => (await ofStatus("completed")) === 5);
    expect(begun).toHaveLength(5);
  });

  test("of a burst, cancelOldest leaves the newest run", async () => {
    const { wf, begun, open } = gated({ onFull: "cancelOldest" });
    open();
    const t = await start(wf);
    const runs = [];
    for (const name of ["a", "b", "c"]) {
      runs.push(await t.pawl.start(wf, name));
      t.clock.moveTo(t.clock.read() + 1);
    }
    await t.settle();
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["canceled", "canceled", "completed"]);
    expect(begun).toEqual(["c"]);
    expect((await runs[0]?.get())?.error).toMatchObject({ code: "LIMIT_SUPERSEDED" });
    await expectSound(t);
  });

  test("a run that has begun waits for its slot, and is never skipped", async () => {
    const { open, opened } = gate();
    onTestFinished(() => open());
    const one = limit("one", { concurrency: 1, onFull: "skip" });
    const begun: string[] = [];
    const wf = workflow("wf", { limits: [one] }, async (ctx, name: string) => {
      await ctx.step("begin", () => void begun.push(name));
      if (name === "sleeper") await ctx.sleep("nap", "1h");
      else await ctx.step("work", () => opened);
    });
    const w = await world();
    const { settle } = await w.worker([wf]);
    const sleeper = await w.pawl.start(wf, "sleeper");
    await settle();
    const holder = await w.pawl.start(wf, "holder");
    const settled = settle();
    await until(() => begun.includes("holder"));
    w.clock.moveTo(w.clock.read() + 3_600_000);
    keepWorking(await w.worker([wf]));
    await until(async () => (await sleeper.explain()).because === "limited");
    const late = await w.pawl.start(wf, "late");
    await until(async () => (await late.status()) === "canceled");
    open();
    await settled;
    await until(async () => (await sleeper.status()) === "completed");
    expect(await holder.status()).toBe("completed");
  });

  test("cancelOldest reaches a run that sleeps with its slot, undoes its steps, and lets the new one begin then", async () => {
    const order: string[] = [];
    const mutex = limit("mutex", { key: "input.customer", concurrency: 1, while: "open", onFull: "cancelOldest" });
    const wf = workflow("wf", { limits: [mutex] }, async (ctx, { name }: { customer: string; name: string }) => {
      await ctx.step("reserve", () => void order.push(`reserve ${name}`), {
        compensate: () => void order.push(`release ${name}`),
      });
      if (name === "old") await ctx.sleep("night", "1 day");
    });
    const t = await start(wf);
    const old = await t.pawl.start(wf, { customer: "c", name: "old" });
    await t.settle();
    const fresh = await t.pawl.start(wf, { customer: "c", name: "new" });
    const other = await t.pawl.start(wf, { customer: "d", name: "other" });
    await t.settle();
    expect(await Promise.all([old, fresh, other].map((run) => run.status()))).toEqual([
      "canceled",
      "completed",
      "completed",
    ]);
    expect(order.filter((line) => !line.endsWith("other"))).toEqual(["reserve old", "release old", "reserve new"]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("graphs and classes are judged as functions are, and a hero is free again", async () => {
    const { open, opened } = gate();
    onTestFinished(() => open());
    const one = limit("one", { concurrency: 1, onFull: "skip" });
    const began: string[] = [];
    const body = (name: string) => async () => {
      began.push(name);
      await opened;
    };
    const f = workflow("f", { limits: [one] }, (ctx) => ctx.step("work", body("f")));
    const g = graph("g", [step("work", body("g"))], { limits: [one] });
    class C extends Workflow<null> {
      static {
        this.options({ name: "c", limits: [one], mayProceedWithoutHero: true });
        this.step("work", body("c"));
      }
    }
    const w = await world();
    keepWorking(await w.worker([f, g, C]));
    const holder = await w.pawl.start(f);
    await until(() => began.length === 1);
    const hero = { type: "User", id: "7" };
    const skipped = [await w.pawl.start(g), await w.pawl.start(C, undefined, { hero })];
    await until(async () => (await Promise.all(skipped.map((run) => run.status()))).every((s) => s === "canceled"));
    const again = await w.pawl.start(C, undefined, { hero });
    await until(async () => (await again.status()) === "canceled");
    open();
    await holder.result();
    expect(began).toEqual(["f"]);
  });

  test("a parent is told that its child was skipped", async () => {
    const one = limit("one", { concurrency: 1, while: "open", onFull: "skip" });
    const child = workflow("child", { limits: [one] }, async (ctx) => void (await ctx.waitForSignal("go")));
    const parent = workflow("parent", async (ctx) => {
      await ctx.start(child);
      await ctx.sleep("a moment", "1s");
      try {
        await ctx.run(child);
      } catch (error) {
        return (error as RunCanceledError).code;
      }
      return "it ran";
    });
    const t = await start(parent, child);
    const run = await t.pawl.start(parent);
    await t.settle();
    await t.advance("1s");
    expect(await run.result()).toBe("LIMIT_SKIPPED");
  });

  test("the values in force decide: an override makes room", async () => {
    const { wf, begun, open } = gated({ onFull: "skip" });
    const w = await world();
    keepWorking(await w.worker([wf]));
    await w.pawl.start(wf, "first");
    await until(() => begun.length === 1);
    await w.pawl.limits.override("one", { concurrency: 2 });
    await w.pawl.start(wf, "second");
    await until(() => begun.length === 2);
    expect(await w.pawl.limits.get("one")).toMatchObject({ onFull: "skip", backlog: 0 });
    open();
  });
});

test("mistakes in onFull and backlog are refused with the name of the limit", () => {
  const make = (options: object) => () => limit("x", { concurrency: 1, ...options });
  expect(make({ onFull: "drop" })).toThrow('onFull of limit "x" must be "wait", "skip", "fail" or "cancelOldest"');
  expect(make({ backlog: 3 })).toThrow('The backlog of limit "x" needs onFull');
  expect(make({ onFull: "skip", backlog: -1 })).toThrow("a whole number from 0 to 10,000");
  expect(make({ onFull: "skip", backlog: 1.5 })).toThrow("a whole number from 0 to 10,000");
  expect(() => limit("x", { rate: { limit: 1, per: "1s" }, onFull: "cancelOldest" })).toThrow("needs a concurrency");
  const skipping = limit("x", { concurrency: 1, onFull: "skip" });
  expect(() => step("s", () => {}, { limit: skipping })).toThrow("a step always waits for its slot");
  expect(limit("x", { concurrency: 1 })).toMatchObject({ onFull: "wait", backlog: null });
});
