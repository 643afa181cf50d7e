/**
 * Wake-ups alone keep everything moving: nothing here polls. The workers' polls are off, their heartbeats (which
 * deliver missed messages) are an hour apart, and the intervals of this process, by which clients poll for results,
 * stand still. A lost wake-up shows as a test that hangs.
 */
import { connect, type Pawl, type WorkerOptions, workflow } from "pawl";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { Gate, until } from "../support/waiting.js";

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    database = await testDatabase(kind);
    pawl = await connect(database.url);
  });

  afterEach(async () => {
    await pawl.close();
    await database.drop();
    vi.useRealTimers();
  });

  const work = (workflows: WorkerOptions["workflows"], options: Partial<WorkerOptions> = {}) =>
    pawl.worker({ workflows, poll: Number.POSITIVE_INFINITY, lease: "1 hour", grace: 0, ...options }).start();

  test("a run that is started while its worker is idle is executed", async () => {
    const quick = workflow("quick", async (ctx) => ctx.step("one", () => 1));
    await work([quick]);
    expect(await (await pawl.start(quick)).result()).toBe(1);
  });

  test("a run that was started before there was a worker is executed", async () => {
    const quick = workflow("quick", async (ctx) => ctx.step("one", () => 1));
    const runs = await pawl.startMany(quick, [undefined, undefined, undefined]);
    await work([quick]);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 1, 1]);
  });

  test("runs that exceed the concurrency are executed when slots become free", async () => {
    const quick = workflow("quick", async (ctx, n: number) => ctx.step("one", () => n));
    await work([quick], { concurrency: 2 });
    const runs = await pawl.startMany(quick, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("one free slot among many long-running runs is enough to execute other runs", async () => {
    const gate = new Gate();
    const long = workflow("long", async (ctx) => ctx.step("wait", () => gate.opened));
    const quick = workflow("quick", async (ctx, n: number) => ctx.step("one", () => n));
    const worker = await work([long, quick], { concurrency: 16 });
    const blockers = await pawl.startMany(
      long,
      Array.from({ length: 15 }, () => undefined),
    );
    await until(() => worker.active === 15);
    const runs = await pawl.startMany(quick, [1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    gate.open();
    await Promise.all(blockers.map((run) => run.result()));
  });

  test("a sleeping run wakes up, also one that becomes due while its worker has no free slot", async () => {
    const sleeper = workflow("sleeper", async (ctx, ms: number) => ctx.sleep("nap", ms));
    const woken = new Gate();
    const busy = workflow("busy", async (ctx) => ctx.step("wait", () => woken.opened));
    const worker = await work([sleeper, busy], { concurrency: 1 });
    const asleep = await pawl.start(sleeper, 60);
    await until(async () => (await asleep.status()) === "waiting");
    const blocker = await pawl.start(busy);
    await until(() => worker.active === 1);
    // The runs became due, with a wake-up, while there was no free slot.
    await new Promise((resolve) => setTimeout(resolve, 120));
    woken.open();
    await blocker.result();
    await asleep.result();
  });

  test("a delayed run starts when it is due", async () => {
    const quick = workflow("quick", async (ctx, n: number) => ctx.step("one", () => n));
    await work([quick]);
    const runs = await Promise.all([
      pawl.start(quick, 1, { delay: 80 }),
      pawl.start(quick, 2, { delay: 40 }),
      pawl.start(quick, 3, { startAt: new Date(Date.now() + 60) }),
    ]);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3]);
  });

  test("runs that a worker has parked are resumed by another worker when the first stops", async () => {
    const sleeper = workflow("sleeper", async (ctx) => {
      await ctx.step("here", () => {});
      await ctx.sleep("nap", 300);
    });
    const first = await work([sleeper]);
    await work([sleeper]);
    const run = await pawl.start(sleeper);
    await until(async () => (await run.status()) === "waiting");
    await first.stop();
    await run.result();
  });

  test("runs that a worker is executing are resumed by another worker when the first stops", async () => {
    const begun = new Gate();
    const never = new Promise<void>(() => {});
    let executions = 0;
    const stuck = workflow("stuck", async (ctx) =>
      ctx.step("wait", () => {
        executions += 1;
        if (executions > 1) return executions;
        begun.open();
        return never.then(() => 0);
      }),
    );
    const first = await work([stuck]);
    const run = await pawl.start(stuck);
    await begun.opened;
    await work([stuck]);
    await first.stop();
    expect(await run.result()).toBe(2);
  });

  test("a failed step is retried", async () => {
    let attempts = 0;
    const flaky = workflow("flaky", async (ctx) =>
      ctx.step(
        "try",
        () => {
          attempts += 1;
          if (attempts < 4) throw new Error("not yet");
          return attempts;
        },
        { retry: { attempts: 5, initial: 20, factor: 1 } },
      ),
    );
    await work([flaky]);
    expect(await (await pawl.start(flaky)).result()).toBe(4);
  });

  test("a signal reaches a waiting run and an executing run", async () => {
    const gate = new Gate();
    const listener = workflow("listener", async (ctx) => {
      const first = await ctx.waitForSignal("go");
      await ctx.step("busy", () => gate.opened);
      return [first, await ctx.waitForSignal("go"), await ctx.waitForSignal("go")];
    });
    const worker = await work([listener]);
    const run = await pawl.start(listener);
    await until(async () => (await run.status()) === "waiting");
    await run.signal("go", 1);
    await until(async () => (await run.status()) === "running" && worker.active === 1);
    await run.signal("go", 2);
    gate.open();
    await until(async () => (await run.status()) === "waiting");
    await run.signal("go", 3);
    expect(await run.result()).toEqual([1, 2, 3]);
  });

  test("signals that race with parking are not lost", async () => {
    const counting = workflow("counting", async (ctx) => {
      const seen: unknown[] = [];
      for (let n = 0; n < 40; n += 1) seen.push(await ctx.waitForSignal("n"));
      return seen;
    });
    await work([counting]);
    const run = await pawl.start(counting);
    const sent = Array.from({ length: 40 }, (_, n) => n);
    for (const n of sent) await run.signal("n", n);
    expect(await run.result()).toEqual(sent);
  });

  test("children that another worker executes wake their parent", async () => {
    const child = workflow("child", async (ctx, n: number) => ctx.step("double", () => n * 2));
    const parent = workflow("parent", async (ctx) => {
      const one = await ctx.run(child, 10);
      return [one, ...(await ctx.map(child, [1, 2, 3, 4, 5, 6], { concurrency: 2 }))];
    });
    await work([parent]);
    await work([child], { concurrency: 1 });
    expect(await (await pawl.start(parent)).result()).toEqual([20, 2, 4, 6, 8, 10, 12]);
  });

  test("a cancellation reaches a waiting run, an executing run, and their children", async () => {
    const child = workflow("child", async (ctx) => ctx.waitForSignal("never"));
    const parent = workflow("parent", async (ctx) => ctx.run(child, undefined));
    const busy = workflow("busy", async (ctx) =>
      ctx.step(
        "wait",
        ({ abortSignal }) => new Promise<void>((resolve) => abortSignal.addEventListener("abort", () => resolve())),
      ),
    );
    const worker = await work([parent, child, busy]);
    const [first, second] = [await pawl.start(parent), await pawl.start(busy)];
    await until(async () => (await pawl.runs({ workflow: child, status: "waiting" })).runs.length === 1);
    await until(async () => (await first.status()) === "waiting" && worker.active === 1);
    await Promise.all([first.cancel("enough"), second.cancel("enough")]);
    await expect(first.result()).rejects.toThrow("enough");
    await expect(second.result()).rejects.toThrow("enough");
    const [orphan] = (await pawl.runs({ workflow: child })).runs;
    await expect(pawl.run(orphan?.id as string).result()).rejects.toThrow();
  });

  test("a paused run continues when it is resumed", async () => {
    const listener = workflow("listener", async (ctx) => ctx.waitForSignal("go"));
    await work([listener]);
    const run = await pawl.start(listener);
    await until(async () => (await run.status()) === "waiting");
    await run.pause();
    await run.signal("go", 7);
    await run.resume();
    expect(await run.result()).toBe(7);
  });
});
