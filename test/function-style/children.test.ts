import { PermanentError, type RunHandle, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const double = workflow("double", async (ctx, n: number) => {
  await ctx.sleep("nap", "1h");
  return ctx.step("double", () => n * 2);
});

describe("ctx.run", () => {
  test("runs a child with its own log and returns its output, on replay too", async () => {
    const parent = workflow("parent", async (ctx) => {
      const value = await ctx.run(double, 4);
      await ctx.sleep("replay", "1h");
      return value;
    });
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    expect(await run.result()).toBe(8);
    const { runs } = await t.pawl.runs({ workflow: double });
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatchObject({ parentId: run.id, status: "completed", output: 8, input: 4 });
  });

  test("parks the parent meanwhile and names the child that it waits for", async () => {
    const parent = workflow("parent", (ctx) => ctx.run(double, 4, { name: "the_double" }));
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.settle();
    const [child] = (await t.pawl.runs({ workflow: double })).runs;
    expect(await run.get()).toMatchObject({
      status: "waiting",
      waitingFor: [{ kind: "child", name: "the_double", runId: child?.id, workflow: "double" }],
    });
  });

  test("throws a RunFailedError with the child's error as its cause", async () => {
    const broken = workflow("broken", async () => {
      throw new PermanentError("no stock");
    });
    const parent = workflow("parent", async (ctx) => {
      try {
        await ctx.run(broken, undefined);
        return null;
      } catch (error) {
        const { name, code, runId, cause } = error as { name: string; code: string; runId: string; cause: Error };
        return { name, code, runId, cause: cause.message, permanent: cause instanceof PermanentError };
      }
    });
    const t = await start(parent, broken);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    const [child] = (await t.pawl.runs({ workflow: broken })).runs;
    expect(await run.result()).toEqual({
      name: "RunFailedError",
      code: "RUN_FAILED",
      runId: child?.id,
      cause: "no stock",
      permanent: true,
    });
  });

  test("fails the parent when its code does not catch the error, with the whole chain of causes", async () => {
    const broken = workflow("broken", async () => {
      throw new PermanentError("no stock");
    });
    const parent = workflow("parent", (ctx) => ctx.run(broken, undefined));
    const t = await start(parent, broken);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    const error = await errorOf(run.result());
    expect(error.cause).toMatchObject({ name: "RunFailedError" });
    expect(error.cause.cause).toMatchObject({ name: "PermanentError", message: "no stock" });
  });

  test("throws a RunCanceledError with the reason when the child was canceled", async () => {
    const parent = workflow("parent", (ctx) => ctx.run(double, 1).catch((error) => [error.name, error.reason]));
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.settle();
    const [child] = (await t.pawl.runs({ workflow: double })).runs;
    await t.pawl.run(child?.id as string).cancel("not needed");
    await t.speedrun(run);
    expect(await run.result()).toEqual(["RunCanceledError", "not needed"]);
  });

  test("keeps two children of the same workflow separate", async () => {
    const parent = workflow("parent", async (ctx) =>
      Promise.all([ctx.run(double, 1), ctx.run(double, 2), ctx.run(double, 3)]),
    );
    expect(await outputOf(parent, undefined, [double])).toEqual([2, 4, 6]);
  });

  test("may name a registered workflow that this process does not define", async () => {
    const parent = workflow("parent", (ctx) => ctx.run<number, number>("double", 21));
    const w = await world();
    const parents = await w.worker([parent]);
    await w.pawl.createWorkflow("double");
    const run = await w.pawl.start(parent);
    await parents.settle();
    const children = await w.worker([double]);
    for (let due = await children.settle(); due !== null; due = await children.settle()) w.clock.moveTo(due);
    await parents.settle();
    expect(await run.result()).toBe(42);
  });

  test("of an unknown name throws a WorkflowNotFoundError", async () => {
    const parent = workflow("parent", (ctx) => ctx.run("nobody", 1).catch((error) => error.code));
    expect(await outputOf(parent, undefined)).toBe("WORKFLOW_NOT_FOUND");
  });

  test("inside a child does not collide with the names of the parent: grandchildren are separate runs", async () => {
    const leaf = workflow("leaf", async (_ctx, n: number) => n);
    const middle = workflow(
      "middle",
      async (ctx, n: number) => (await ctx.run(leaf, n)) + (await ctx.run(leaf, n * 10)),
    );
    const top = workflow("top", async (ctx) => Promise.all([ctx.run(middle, 1), ctx.run(middle, 2)]));
    expect(await outputOf(top, undefined, [middle, leaf])).toEqual([11, 22]);
  });

  test("refuses an input that the child's schema rejects", async () => {
    const { z } = await import("zod");
    const strict = workflow("strict", { input: z.object({ n: z.number() }) }, async (_ctx, { n }) => n);
    const parent = workflow("parent", (ctx) => ctx.run(strict, { n: "one" } as never).catch((error) => error.code));
    const t = await start(parent, strict);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    expect(await run.result()).toBe("INVALID_INPUT");
    expect((await t.pawl.runs({ workflow: strict })).runs).toEqual([]);
  });

  test("passes priority and tags to the child", async () => {
    const parent = workflow("parent", (ctx) => ctx.run(double, 1, { priority: 7, tags: ["vip"] }));
    const t = await start(parent, double);
    await t.speedrun(await t.pawl.start(parent));
    expect((await t.pawl.runs({ tag: "vip" })).runs).toMatchObject([
      { workflow: "double", priority: 7, tags: ["vip"] },
    ]);
  });
});

describe("ctx.start", () => {
  test("returns a handle at once; result() waits for the child", async () => {
    const parent = workflow("parent", async (ctx) => {
      const child = await ctx.start(double, 5);
      const meanwhile = await ctx.step("meanwhile", () => "done");
      return { id: child.runId, meanwhile, result: await child.result(), again: await child.result() };
    });
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    const [child] = (await t.pawl.runs({ workflow: double })).runs;
    expect(await run.result()).toEqual({ id: child?.id, meanwhile: "done", result: 10, again: 10 });
  });

  test("starts the child once, even when the parent is replayed", async () => {
    const parent = workflow("parent", async (ctx) => {
      const child = await ctx.start(double, 5);
      await ctx.sleep("a", "1m");
      await ctx.sleep("b", "1m");
      return child.result();
    });
    const t = await start(parent, double);
    await t.speedrun(await t.pawl.start(parent));
    expect((await t.pawl.runs({ workflow: double })).runs).toHaveLength(1);
  });

  test("does not disturb the worker when the child fails and its result is never awaited", async () => {
    const broken = workflow("broken", async () => {
      throw new PermanentError("no stock");
    });
    const parent = workflow("parent", async (ctx) => {
      await ctx.start(broken, undefined);
      await ctx.sleep("while", "1 day");
      return "fine";
    });
    expect(await outputOf(parent, undefined, [broken])).toBe("fine");
  });
});

describe("canceling the children", () => {
  test("reaches children and grandchildren, waiting and running", async () => {
    const started = gate();
    const aborted: string[] = [];
    const leaf = workflow("leaf", async (ctx, busy: boolean) => {
      if (!busy) return void (await ctx.waitForSignal("never"));
      await ctx.step("busy", ({ abortSignal }) => {
        started.open();
        return new Promise<void>((resolve) =>
          abortSignal.addEventListener("abort", () => {
            aborted.push("busy");
            resolve();
          }),
        );
      });
    });
    const middle = workflow("middle", async (ctx) => {
      await Promise.all([ctx.run(leaf, true), ctx.run(leaf, false)]);
    });
    const top = workflow("top", (ctx) => ctx.run(middle, undefined));
    const w = await world();
    const { settle } = await w.worker([top, middle, leaf]);
    const run = await w.pawl.start(top);
    await started.opened;
    await until(async () => (await w.pawl.runs({ status: "waiting" })).runs.length === 3);
    await run.cancel("no longer wanted");
    await settle();
    const { runs } = await w.pawl.runs();
    expect(runs.map(({ workflow: name, status }) => `${name} ${status}`).sort()).toEqual([
      "leaf canceled",
      "leaf canceled",
      "middle canceled",
      "top canceled",
    ]);
    expect(aborted).toEqual(["busy"]);
    expect(await errorOf(run.result())).toMatchObject({ code: "RUN_CANCELED", reason: "no longer wanted" });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("reaches the children even if no worker is running at that moment", async () => {
    const parent = workflow("parent", (ctx) => ctx.run(double, 1));
    const w = await world();
    const first = await w.worker([parent, double]);
    const run = await w.pawl.start(parent);
    await first.settle();
    await first.kill();
    await run.cancel();
    const second = await w.worker([parent, double]);
    await second.settle();
    const { runs } = await w.pawl.runs();
    expect(runs.map(({ status }) => status)).toEqual(["canceled", "canceled"]);
  });

  test("cancels the pending children of a parent that fails", async () => {
    const parent = workflow("parent", async (ctx) => {
      await Promise.all([
        ctx.run(double, 1),
        ctx.step("bad", () => {
          throw new PermanentError("bad");
        }),
      ]);
    });
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.settle();
    expect(await run.status()).toBe("failed");
    expect((await t.pawl.runs({ workflow: double })).runs).toMatchObject([{ status: "canceled" }]);
  });
});

describe("parent and child", () => {
  test("agree after the worker crashes at any moment", async () => {
    const parent = workflow("crash-parent", async (ctx) => {
      const one = await ctx.start(double, 1);
      const two = await ctx.run(double, 2);
      return [await one.result(), two];
    });
    const t = await start(parent, double);
    const report = await t.crashTest(parent, undefined);
    expect(report.output).toEqual([2, 4]);
    expect(report.commits).toBeGreaterThan(5);
  });

  test("a child that is resumed after a pause still delivers its result to its parent", async () => {
    const parent = workflow("parent", (ctx) => ctx.run(double, 3));
    const t = await start(parent, double);
    const run = await t.pawl.start(parent);
    await t.settle();
    const [info] = (await t.pawl.runs({ workflow: double })).runs;
    const child = t.pawl.run(info?.id as string) as RunHandle;
    await child.pause("wait a moment");
    await t.advance("3h");
    expect(await run.status()).toBe("waiting");
    await child.resume();
    await t.speedrun(run);
    expect(await run.result()).toBe(6);
    expect(await logOf(child)).toContain("run.resumed");
  });
});
