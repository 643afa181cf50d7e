import { type WorkflowContext, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

type Handler = (ctx: WorkflowContext<void>) => Promise<unknown>;
const named = (handler: Handler) => workflow("changing", handler);

/** Runs the old code until it waits, then runs the new code, as after a deploy. */
async function runThroughDeploy(before: Handler, after: Handler) {
  const w = await world();
  const old = await w.worker([named(before)]);
  const run = await w.pawl.start(named(before));
  await old.settle();
  await old.kill();
  const replace = async (handler: Handler) => {
    const next = await w.worker([named(handler)]);
    for (let due = await next.settle(); due !== null; due = await next.settle()) w.clock.moveTo(due);
    return next;
  };
  const current = await replace(after);
  return { run, w, replace, current };
}

const original: Handler = async (ctx) => {
  const a = await ctx.step("a", () => "a");
  await ctx.sleep("nap", "1h");
  return [a, await ctx.step("b", () => "b")];
};

describe("code that has changed under an open run", () => {
  test("may have new steps after the recorded ones, and before them if they are marked as added", async () => {
    const { run } = await runThroughDeploy(original, async (ctx) => {
      const zero = await ctx.step("zero", () => "zero", { added: true });
      const a = await ctx.step("a", () => "never again");
      await ctx.sleep("nap", "1h");
      return [zero, a, await ctx.step("b", () => "b"), await ctx.step("c", () => "c")];
    });
    expect(await run.result()).toEqual(["zero", "a", "b", "c"]);
  });

  test("that lost a step pauses the run with a NonDeterminismError that names it; with the step back it resumes", async () => {
    const { run, current, replace, w } = await runThroughDeploy(original, async (ctx) => {
      await ctx.sleep("nap", "1h");
      return ["without a"];
    });
    expect(await run.status()).toBe("paused");
    const paused = (await run.history()).findLast((event) => event.type === "run.paused");
    expect(paused?.data).toMatchObject({
      error: { name: "NonDeterminismError", code: "NON_DETERMINISM", message: expect.stringContaining('"a"') },
    });
    expect((await w.pawl.verify()).differences).toEqual([]);
    await current.kill();
    await run.resume();
    await replace(original);
    expect(await run.result()).toEqual(["a", "b"]);
  });

  test("whose step has become a sleep pauses the run with a NonDeterminismError that names it", async () => {
    const { run } = await runThroughDeploy(original, async (ctx) => {
      await ctx.sleep("a", "1h");
      await ctx.sleep("nap", "1h");
      return "changed";
    });
    expect(await run.status()).toBe("paused");
    const paused = (await run.history()).findLast((event) => event.type === "run.paused");
    expect(paused?.data).toMatchObject({
      error: { code: "NON_DETERMINISM", message: expect.stringMatching(/"a".*step.*timer/) },
    });
  });

  test("does not run a step under a name that is recorded as another kind of call, even while another step is running", async () => {
    const finish = gate();
    let executed = 0;
    const { run } = await runThroughDeploy(original, async (ctx) => {
      const slow = ctx.step("slow", () => finish.opened);
      setTimeout(() => finish.open(), 20);
      await ctx.step("nap", () => void (executed += 1));
      await slow;
      return "changed";
    });
    await until(async () => (await run.status()) !== "running");
    expect(await run.status()).toBe("paused");
    expect(executed).toBe(0);
    expect(await logOf(run)).not.toContain("step.completed nap");
  });

  test("whose map has another number of items pauses the run", async () => {
    const child = workflow("child", (ctx, _n: number) => ctx.sleep("nap", "1h"));
    const parent = (items: number[]) => workflow("changing", async (ctx) => (await ctx.map(child, items)).length);
    const w = await world();
    const old = await w.worker([parent([1, 2]), child]);
    const run = await w.pawl.start(parent([1, 2]));
    await old.settle();
    await old.kill();
    const next = await w.worker([parent([1, 2, 3]), child]);
    for (let due = await next.settle(); due !== null; due = await next.settle()) w.clock.moveTo(due);
    expect(await run.status()).toBe("paused");
    expect((await w.pawl.runs({ workflow: child })).runs).toHaveLength(2);
  });

  test("that chooses a branch at random follows the branch that is recorded", async () => {
    const choices: string[] = [];
    const handler =
      (choice: "left" | "right"): Handler =>
      async (ctx) => {
        const taken = await ctx.branch(
          "way",
          () => {
            choices.push(choice);
            return choice;
          },
          { left: async () => ctx.step("left", () => "left"), right: () => "right" },
        );
        await ctx.sleep("nap", "1h");
        return taken;
      };
    const { run } = await runThroughDeploy(handler("left"), handler("right"));
    expect(await run.result()).toBe("left");
    expect(choices).toEqual(["left"]);
  });
});

describe("ctx.branch", () => {
  test("fails on a choice that is not a case, and lists the cases", async () => {
    const wf = workflow("unknown-case", (ctx) =>
      ctx.branch("way", () => "up" as never, { left: () => 1, right: () => 2 }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await run.get()).error?.message).toMatch(/"up".*left, right/);
  });

  test("does not accept property names of Object.prototype as cases", async () => {
    const wf = workflow("inherited", (ctx) => ctx.branch("way", () => "toString" as never, { left: () => 1 }));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("failed");
  });

  test("may choose asynchronously", async () => {
    const wf = workflow("async-choice", (ctx) =>
      ctx.branch("way", async () => "left" as const, { left: async () => 1, right: () => 2 }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.result()).toBe(1);
    expect(await logOf(run)).toContain("branch.chosen way");
  });
});

describe("ctx.patched", () => {
  const patchedCode: Handler = async (ctx) => {
    await ctx.step("a", () => "a");
    await ctx.sleep("nap", "1h");
    return ctx.patched("new_mail") ? ctx.step("new", () => "new") : ctx.step("b", () => "old");
  };

  test("is true for new runs, and stays true", async () => {
    const wf = named(async (ctx) => {
      const first = ctx.patched("p");
      await ctx.sleep("one", "1h");
      const second = ctx.patched("p");
      await ctx.sleep("two", "1h");
      return [first, second, ctx.patched("p"), ctx.patched("q")];
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toEqual([true, true, true, true]);
  });

  test("is false where an old run has already passed the call", async () => {
    const seen: boolean[] = [];
    const { run } = await runThroughDeploy(original, async (ctx) => {
      seen.push(ctx.patched("early"));
      const a = await ctx.step("a", () => "a");
      await ctx.sleep("nap", "1h");
      return [a, await ctx.step("b", () => "b")];
    });
    expect(await run.result()).toEqual(["a", "b"]);
    expect(seen.length).toBeGreaterThan(0);
    expect(new Set(seen)).toEqual(new Set([false]));
  });

  test("is true where an old run has not reached the call yet", async () => {
    const { run } = await runThroughDeploy(original, patchedCode);
    expect(await run.result()).toBe("new");
  });

  test("keeps its answer when the worker crashes right after it", async () => {
    const started = gate();
    const answers: boolean[] = [];
    const wf = named(async (ctx) => {
      answers.push(ctx.patched("p"));
      await ctx.step("hang", async ({ attempt: _ }) => {
        started.open();
        return answers.length === 1 ? new Promise(() => {}) : 1;
      });
      return ctx.patched("p");
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await first.kill();
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe(true);
    expect(answers).toEqual([true, true]);
  });
});

describe("versions", () => {
  const versioned = (version: string) =>
    workflow("versioned", { version }, async (ctx) => {
      await ctx.sleep("nap", "1h");
      return version;
    });

  test("pin open runs to workers that have their version", async () => {
    const w = await world();
    const run = await w.pawl.start(versioned("1"), undefined);
    const two = await w.worker([versioned("2")]);
    expect(await two.settle()).toBeNull();
    expect(await run.status()).toBe("pending");
    const one = await w.worker([versioned("1")]);
    for (let due = await one.settle(); due !== null; due = await one.settle()) w.clock.moveTo(due);
    expect(await run.result()).toBe("1");
    expect((await run.get()).version).toBe("1");
  });

  test("run side by side in one worker", async () => {
    const w = await world();
    const worker = await w.worker([versioned("1"), versioned("2")]);
    const [one, two] = [await w.pawl.start(versioned("1"), undefined), await w.pawl.start(versioned("2"), undefined)];
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    expect([await one.result(), await two.result()]).toEqual(["1", "2"]);
  });
});
