import { PermanentError, RunFailedError, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const square = workflow("square", async (_ctx, n: number) => n * n);
const napping = workflow("napping", async (ctx, n: number) => {
  await ctx.sleep("nap", n);
  return n;
});

describe("ctx.map", () => {
  test("returns the outputs in the order of the items, no matter which child ends first", async () => {
    const parent = workflow("parent", async (ctx) => [...(await ctx.map(napping, [500, 10, 300, 20, 1]))]);
    expect(await outputOf(parent, undefined, [napping])).toEqual([500, 10, 300, 20, 1]);
  });

  test("of no items returns an empty array at once", async () => {
    const parent = workflow("parent", async (ctx) => {
      const outputs = await ctx.map(square, []);
      return { outputs: [...outputs], failures: outputs.failures };
    });
    expect(await outputOf(parent, undefined, [square])).toEqual({ outputs: [], failures: [] });
  });

  test("returns the same outputs on replay", async () => {
    const seen: number[][] = [];
    const parent = workflow("parent", async (ctx) => {
      seen.push([...(await ctx.map(square, [1, 2, 3]))]);
      await ctx.sleep("replay", "1h");
      return seen.length;
    });
    expect(await outputOf(parent, undefined, [square])).toBe(2);
    expect(seen).toEqual([
      [1, 4, 9],
      [1, 4, 9],
    ]);
  });

  test("runs as many children at a time as its concurrency allows, and no more", async () => {
    let running = 0;
    let maxRunning = 0;
    const busy = workflow("busy", (ctx, n: number) =>
      ctx.step("work", async () => {
        running += 1;
        maxRunning = Math.max(maxRunning, running);
        await new Promise((resolve) => setTimeout(resolve, n % 3));
        running -= 1;
        return n;
      }),
    );
    const parent = workflow("parent", async (ctx) => [
      ...(await ctx.map(
        busy,
        Array.from({ length: 40 }, (_, n) => n),
        { concurrency: 3 },
      )),
    ]);
    expect(await outputOf(parent, undefined, [busy])).toEqual(Array.from({ length: 40 }, (_, n) => n));
    expect(maxRunning).toBe(3);
  });

  test("keeps to its concurrency with children that sleep, and after a crash", async () => {
    const parent = workflow("parent", async (ctx) => [
      ...(await ctx.map(napping, [60, 60, 60, 60, 60], { concurrency: 2 })),
    ]);
    const w = await world();
    const begin = w.clock.read();
    const first = await w.worker([parent, napping]);
    const run = await w.pawl.start(parent);
    const due = await first.settle();
    const sleeping = async () => (await w.pawl.runs({ workflow: napping, status: "waiting" })).runs.length;
    expect(await sleeping()).toBe(2);
    await first.kill();
    const second = await w.worker([parent, napping]);
    await second.settle();
    expect(await sleeping()).toBe(2);
    w.clock.moveTo(due as number);
    for (let next = await second.settle(); next !== null; next = await second.settle()) {
      expect(await sleeping()).toBeLessThanOrEqual(2);
      w.clock.moveTo(next);
    }
    expect(await run.result()).toEqual([60, 60, 60, 60, 60]);
    expect(w.clock.read() - begin).toBe(180);
  });

  test("reports how many of its children have ended", async () => {
    const parent = workflow("parent", (ctx) => ctx.map(napping, [10, 1_000, 2_000]));
    const t = await start(parent, napping);
    const run = await t.pawl.start(parent);
    await t.advance(10);
    expect((await run.get()).waitingFor).toEqual([
      { kind: "map", name: "napping", workflow: "napping", settled: 1, count: 3 },
    ]);
  });

  test("fails when one child fails, with its error as the cause, and cancels the rest", async () => {
    const picky = workflow("picky", async (ctx, n: number) => {
      if (n === 2) throw new PermanentError("not two");
      await ctx.sleep("nap", "1 day");
      return n;
    });
    const parent = workflow("parent", (ctx) => ctx.map(picky, [1, 2, 3, 4, 5], { concurrency: 3 }));
    const t = await start(parent, picky);
    const run = await t.pawl.start(parent);
    await t.settle();
    const error = await errorOf(run.result({ timeout: "100s" }));
    expect(error.cause.message).toContain("1 of the 5");
    expect(error.cause.cause).toMatchObject({ code: "RUN_FAILED" });
    expect(error.cause.cause.cause.message).toBe("not two");
    const { runs } = await t.pawl.runs({ workflow: picky });
    expect(runs.map(({ input, status }) => `${input} ${status}`).sort()).toEqual([
      "1 canceled",
      "2 failed",
      "3 canceled",
      "4 canceled",
      "5 canceled",
    ]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("tolerates the allowed number of failures, and lists them", async () => {
    const picky = workflow("picky", async (_ctx, n: number) => {
      if (n % 2 === 0) throw new PermanentError(`not ${n}`);
      return n;
    });
    const parent = workflow("parent", async (ctx) => {
      const outputs = await ctx.map(picky, [1, 2, 3, 4, 5], { tolerate: 2 });
      return {
        outputs: [...outputs],
        failures: outputs.failures.map(({ index, runId, error }) => ({
          index,
          isFailure: error instanceof RunFailedError && error.runId === runId,
          message: (error.cause as Error).message,
        })),
      };
    });
    expect(await outputOf(parent, undefined, [picky])).toEqual({
      outputs: [1, undefined, 3, undefined, 5],
      failures: [
        { index: 1, isFailure: true, message: "not 2" },
        { index: 3, isFailure: true, message: "not 4" },
      ],
    });
  });

  test("fails when there is one failure more than it tolerates", async () => {
    const broken = workflow("broken", async () => {
      throw new PermanentError("no");
    });
    const parent = workflow("parent", (ctx) =>
      ctx.map(broken, [undefined, undefined, undefined], { tolerate: 2, concurrency: 1 }),
    );
    const t = await start(parent, broken);
    const run = await t.pawl.start(parent);
    await t.settle();
    expect((await errorOf(run.result({ timeout: "100s" }))).cause.message).toContain("3 of the 3");
  });

  test("can fail in a try block, and the workflow continues", async () => {
    const broken = workflow("broken", async () => {
      throw new PermanentError("no");
    });
    const parent = workflow("parent", async (ctx) => {
      const caught = await ctx.map(broken, [undefined, undefined]).catch((error: Error) => error.name);
      await ctx.sleep("replay", "1h");
      return caught;
    });
    expect(await outputOf(parent, undefined, [broken])).toBe("PermanentError");
  });

  test("of 1,200 items, more than one commit holds, completes with each child once", async () => {
    let executed = 0;
    const counted = workflow("counted", async (_ctx, n: number) => {
      executed += 1;
      return n;
    });
    const parent = workflow("parent", async (ctx) => {
      const outputs = await ctx.map(
        counted,
        Array.from({ length: 1_200 }, (_, n) => n),
        { concurrency: 600 },
      );
      return outputs.reduce((sum, n) => sum + n, 0);
    });
    const t = await start(parent, counted);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    expect(await run.result()).toBe((1_199 * 1_200) / 2);
    expect(executed).toBe(1_200);
  });

  test("leaves no children behind when one item cannot be stored", async () => {
    const parent = workflow("parent", (ctx) => ctx.map(square, [1, (() => {}) as never, 3]));
    const t = await start(parent, square);
    const run = await t.pawl.start(parent);
    await t.settle();
    expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ code: "SERIALIZATION_ERROR" });
    expect((await t.pawl.runs({ workflow: square })).runs).toEqual([]);
  });

  test("continues with the rest when a child is canceled from outside and one failure is tolerated", async () => {
    const parent = workflow("parent", async (ctx) => {
      const outputs = await ctx.map(napping, [100, 200], { tolerate: 1 });
      return { outputs: [...outputs], failures: outputs.failures.map(({ index, error }) => [index, error.name]) };
    });
    const t = await start(parent, napping);
    const run = await t.pawl.start(parent);
    await t.settle();
    const { runs } = await t.pawl.runs({ workflow: napping });
    await t.pawl.run(runs.find(({ input }) => input === 100)?.id as string).cancel();
    await t.speedrun(run);
    expect(await run.result()).toEqual({ outputs: [undefined, 200], failures: [[0, "RunCanceledError"]] });
  });

  test("cancels its children with its parent, including those that have not started", async () => {
    const parent = workflow("parent", (ctx) => ctx.map(napping, [1_000, 1_000, 1_000, 1_000], { concurrency: 2 }));
    const t = await start(parent, napping);
    const run = await t.pawl.start(parent);
    await t.settle();
    await run.cancel();
    await t.settle();
    expect(await run.status()).toBe("canceled");
    const { runs } = await t.pawl.runs({ workflow: napping });
    expect(runs.map(({ status }) => status)).toEqual(Array(4).fill("canceled"));
  });

  test.each([
    ["items that are not an array", (ctx: any) => ctx.map(square, new Set([1]))],
    ["a concurrency of 0", (ctx: any) => ctx.map(square, [1], { concurrency: 0 })],
    ["a concurrency of NaN", (ctx: any) => ctx.map(square, [1], { concurrency: Number.NaN })],
    ["a negative tolerance", (ctx: any) => ctx.map(square, [1], { tolerate: -1 })],
    ["an unknown workflow", (ctx: any) => ctx.map("nobody", [1])],
  ])("refuses %s", async (_what, body) => {
    const parent = workflow("parent", async (ctx) => body(ctx).catch((error: { code: string }) => error.code));
    expect(await outputOf(parent, undefined, [square])).toMatch(/INVALID_INPUT|WORKFLOW_NOT_FOUND/);
  });

  test("returns the same result after a crash at any moment", async () => {
    const parent = workflow("crash-map", async (ctx) => [
      ...(await ctx.map(napping, [30, 10, 20, 40], { concurrency: 2 })),
    ]);
    const t = await start(parent, napping);
    const report = await t.crashTest(parent, undefined);
    expect(report.output).toEqual([30, 10, 20, 40]);
  });

  test("runs its children on several workers", async () => {
    const executedBy = new Set<string>();
    const both = gate();
    const where = workflow("where", (ctx, _n: number) =>
      ctx.step("note", async () => {
        executedBy.add(ctx.runId);
        if (executedBy.size === 4) both.open();
        await both.opened;
        return 1;
      }),
    );
    const parent = workflow("parent", async (ctx) => (await ctx.map(where, [1, 2, 3, 4])).length);
    const w = await world();
    const one = await w.worker([parent, where], { concurrency: 2 });
    const two = await w.worker([where], { concurrency: 2 });
    const run = await w.pawl.start(parent);
    await until(async () => {
      if (executedBy.size < 4) expect(one.worker.active + two.worker.active).toBeLessThanOrEqual(4);
      return (await run.get()).finishedAt !== null;
    });
    expect(await run.result()).toBe(4);
  });
});
