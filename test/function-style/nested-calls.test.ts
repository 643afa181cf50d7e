/**
 * Durable calls inside the function of a step are refused. They are allowed beside it, after it and in bodies that may
 * wait.
 */
import { connect, graph, type StepContext, step, Workflow, type WorkflowContext, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { silent, start } from "../support/virtual-worlds.js";

const child = workflow("child", () => "done");

const calls: Record<string, (ctx: WorkflowContext<any>) => unknown> = {
  'sleep("nap")': (ctx) => ctx.sleep("nap", "1h"),
  'waitForSignal("go")': (ctx) => ctx.waitForSignal("go"),
  'waitForSignal("a", "b")': (ctx) => ctx.waitForAll(["a", "b"]),
  'step("inner")': (ctx) => ctx.step("inner", () => {}),
  'transaction("inner")': (ctx) => ctx.transaction("inner", () => {}),
  "run or ctx.start": (ctx) => ctx.run(child),
  map: (ctx) => ctx.map(child, [undefined]),
  'branch("which")': (ctx) => ctx.branch("which", () => "a", { a: () => {} }),
};

const tick = () => new Promise((resolve) => setImmediate(resolve));

const places: Record<string, (ctx: WorkflowContext<any>, call: () => unknown) => () => unknown> = {
  "at once": (_, call) => () => call(),
  "after an await": (_, call) => async () => {
    await tick();
    await call();
  },
  "in a helper after an await": (_, call) => () => helper(call),
  "in a callback": (_, call) => () =>
    new Promise((resolve, reject) => {
      setTimeout(() => Promise.resolve().then(call).then(resolve, reject), 1);
    }),
};

async function helper(call: () => unknown): Promise<unknown> {
  await tick();
  return call();
}

describe.each(Object.keys(places))("%s", (place) => {
  test.each(Object.keys(calls))("ctx.%s in the function of a step is refused, once", async (call) => {
    let executed = 0;
    const outer = workflow("outer", async (ctx) => {
      const body = places[place]?.(ctx, () => calls[call]?.(ctx)) as () => unknown;
      await ctx.step("charge", () => {
        executed += 1;
        return body();
      });
    });
    const t = await start(outer, child);
    const run = await t.pawl.start(outer);
    await t.settle();
    expect((await run.get()).error).toMatchObject({
      code: "PERMANENT_ERROR",
      message: expect.stringContaining(`ctx.${call} was called inside the function of step "charge".`),
    });
    expect((await run.get()).error?.message).toMatch(/Call it outside of the step/);
    expect(executed).toBe(1);
  });
});

test("a worker in production refuses the call in async functions, and in other functions once one of them has returned a promise", async () => {
  const outer = workflow("outer", async (ctx, kind: "async" | "plain") => {
    await ctx.step("warm up", () => tick());
    const nested = async () => {
      await tick();
      await ctx.sleep("nap", "1h");
    };
    await (kind === "async" ? ctx.step("charge", nested) : ctx.step("charge", () => nested()));
  });
  const pawl = await connect("memory:", { logger: silent });
  onTestFinished(() => pawl.close());
  await pawl.worker({ workflows: [outer] }).start();
  for (const kind of ["async", "plain"] as const) {
    const run = await pawl.start(outer, kind);
    await expect(run.result()).rejects.toThrow('ctx.sleep("nap") was called inside the function of step "charge"');
  }
});

test("calls beside a step that is executing, and after it, are not attributed to the step", async () => {
  const beside = workflow("beside", async (ctx) => {
    const [first] = await Promise.all([
      ctx.step("slow", async () => {
        await tick();
        return "slow";
      }),
      ctx.sleep("nap", "1h"),
      (async () => {
        await ctx.step("other", () => tick());
        return ctx.run(child);
      })(),
    ]);
    const second = await ctx.step("next", () => helper(() => "next"));
    await ctx.sleep("nap again", "1h");
    return [first, second];
  });
  const t = await start(beside, child);
  const run = await t.pawl.start(beside);
  await t.speedrun(run);
  expect(await run.result()).toEqual(["slow", "next"]);
});

test("a step may start an independent run, and may use flow control", async () => {
  const outer = workflow("outer", async (ctx) => {
    const id = await ctx.step("start", async () => (await t.pawl.start(child)).id);
    await ctx.step("skips", async () => {
      await tick();
      return ctx.skip();
    });
    return id;
  });
  const t = await start(outer, child);
  const run = await t.pawl.start(outer);
  await t.speedrun(run);
  expect(await t.pawl.run(await run.result()).status()).toBe("completed");
});

test("steps of classes and graphs may wait", async () => {
  class Waits extends Workflow {
    static {
      this.step("waits", async (w) => {
        await tick();
        await w.sleep("nap", "1h");
      });
    }
  }
  const waits = step("waits", async (ctx: StepContext<void>) => {
    await tick();
    await ctx.sleep("nap", "1h");
    return "rested";
  });
  const rests = graph("rests", [waits]);
  const t = await start(Waits, rests);
  const runs = [await t.pawl.start(Waits), await t.pawl.start(rests)];
  for (const run of runs) await t.speedrun(run);
  expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["completed", "completed"]);
});
