import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { outputOf, start } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

describe("ctx.cancel", () => {
  test.each(["in a step", "in the handler"])("%s ends the run as canceled, with the reason", async (where) => {
    let after = 0;
    const wf = workflow("canceling", async (ctx) => {
      if (where === "in a step") await ctx.step("decide", () => ctx.cancel("fraud"));
      else ctx.cancel("fraud");
      after += 1;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("canceled");
    expect(await errorOf(run.result())).toMatchObject({ code: "RUN_CANCELED", reason: "fraud" });
    expect((await run.get()).error?.message).toContain("fraud");
    expect(after).toBe(0);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("in a step records that step as canceled by flow control", async () => {
    const wf = workflow("canceling", (ctx) => ctx.step("decide", () => ctx.cancel()));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.executions()).toMatchObject([
      { step: "decide", state: "canceled", outcome: "canceled_by_flow_control" },
    ]);
  });
});

describe("ctx.pause", () => {
  test("in the handler pauses the run; after resume() the code continues behind the call", async () => {
    const executed: string[] = [];
    const wf = workflow("pausing", async (ctx) => {
      await ctx.step("before", () => void executed.push("before"));
      if (executed.length > 0) ctx.pause("look first");
      await ctx.step("after", () => void executed.push("after"));
      ctx.pause();
      return "end";
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect((await run.history()).at(-1)).toMatchObject({ type: "run.paused", data: { reason: "look first" } });
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect(executed).toEqual(["before", "after"]);
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe("end");
    expect(executed).toEqual(["before", "after"]);
  });

  test("in a step pauses the run; after resume() the step runs again", async () => {
    let ready = false;
    const wf = workflow("pausing", (ctx) => ctx.step("check", () => (ready ? "ready" : ctx.pause("not ready"))));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect(await run.executions()).toMatchObject([{ step: "check", state: "canceled", outcome: "workflow_paused" }]);
    ready = true;
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe("ready");
  });

  test("lets a parallel step finish, and keeps its result", async () => {
    const started = gate();
    const finish = gate();
    let executed = 0;
    const wf = workflow("pausing", async (ctx) => {
      const beside = ctx.step("beside", async () => {
        executed += 1;
        started.open();
        await finish.opened;
        return "beside";
      });
      await ctx.step("first", () => started.opened);
      ctx.pause();
      return beside;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    void t.settle();
    await started.opened;
    setTimeout(() => finish.open(), 20);
    await t.settle();
    expect(await run.status()).toBe("paused");
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe("beside");
    expect(executed).toBe(1);
  });
});

describe("ctx.skip", () => {
  test("in a step skips it: its result is undefined, on replay too", async () => {
    let executed = 0;
    const wf = workflow("skipping", async (ctx) => {
      const value = await ctx.step("optional", () => {
        executed += 1;
        ctx.skip();
        return "never";
      });
      await ctx.sleep("replay", "1h");
      return [value];
    });
    expect(await outputOf(wf, undefined)).toEqual([undefined]);
    expect(executed).toBe(1);
  });

  test("in the handler completes the run without output", async () => {
    const wf = workflow("skipping", async (ctx) => ctx.skip());
    expect(await outputOf(wf, undefined)).toBeUndefined();
  });
});

describe("ctx.reattempt", () => {
  test("in a step runs it again after the wait, and does not count as a failure", async () => {
    const at: number[] = [];
    const wf = workflow("reattempting", { retry: { attempts: 1 } }, (ctx) =>
      ctx.step("poll", () => {
        at.push(t.clock.read());
        if (at.length < 20) ctx.reattempt({ wait: "1m" });
        return at.length;
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.speedrun(run);
    expect(await run.result()).toBe(20);
    expect(at.slice(1).map((time, index) => time - (at[index] as number))).toEqual(Array(19).fill(60_000));
    expect((await run.executions()).slice(0, 2)).toMatchObject([
      { outcome: "reattempted", state: "completed" },
      { outcome: "reattempted" },
    ]);
  });

  test("in the handler runs the handler again with its recorded steps", async () => {
    let passes = 0;
    let steps = 0;
    const wf = workflow("again", async (ctx) => {
      await ctx.step("once", () => void (steps += 1));
      passes += 1;
      if (passes < 3) ctx.reattempt({ wait: "1h" });
      return passes;
    });
    expect(await outputOf(wf, undefined)).toBe(3);
    expect(steps).toBe(1);
  });

  test("with rewind discards the recorded steps and runs them again", async () => {
    const executed: string[] = [];
    let passes = 0;
    const wf = workflow("rewinding", async (ctx) => {
      const a = await ctx.step("a", () => executed.push("a"));
      await ctx.sleep("nap", "1h");
      const b = await ctx.step("b", () => executed.push("b"));
      passes += 1;
      if (passes === 1) ctx.reattempt({ rewind: true, wait: "1 day" });
      return [a, b];
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(executed).toEqual(["a", "b", "a", "b"]);
    expect(await run.result()).toEqual([3, 4]);
    expect((await run.executions()).map(({ step }) => step)).toEqual(["a", "b", "a", "b"]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("with rewind runs children again too", async () => {
    let childRuns = 0;
    const child = workflow("child", async () => ++childRuns);
    const wf = workflow("rewinding", async (ctx) => {
      const one = await ctx.run(child, undefined);
      const many = await ctx.map(child, [undefined, undefined]);
      const pass = await ctx.step("pass", () => childRuns);
      if (pass < 6) ctx.reattempt({ rewind: true });
      return { one, many: [...many].sort() };
    });
    expect(await outputOf(wf, undefined, [child])).toEqual({ one: 4, many: [5, 6] });
  });
});

describe("ctx.finish", () => {
  test.each(["in a step", "in the handler"])("%s completes the run with its output", async (where) => {
    const wf = workflow("finishing", async (ctx) => {
      if (where === "in a step") await ctx.step("decide", () => ctx.finish({ early: true }));
      else ctx.finish({ early: true });
      return { early: false };
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.result()).toEqual({ early: true });
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("cancels the children that are still running", async () => {
    const child = workflow("child", (ctx) => ctx.sleep("nap", "1 day"));
    const wf = workflow("finishing", async (ctx) => {
      await ctx.start(child, undefined);
      await ctx.sleep("a_little", 10);
      ctx.finish("enough");
    });
    const t = await start(wf, child);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    await t.settle();
    expect(await run.result()).toBe("enough");
    expect((await t.pawl.runs({ workflow: child })).runs).toMatchObject([{ status: "canceled" }]);
  });

  test("validates its output against the workflow's schema", async () => {
    const { z } = await import("zod");
    const wf = workflow("checked", { output: z.object({ n: z.number() }) }, async (ctx) => ctx.finish({ n: "one" }));
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.settle();
    expect((await errorOf(run.result())).cause).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("ctx.suspend", () => {
  test("in a step ends this execution; a successor continues after the wait", async () => {
    let calls = 0;
    const wf = workflow("suspending", (ctx) =>
      ctx.step("part", () => {
        calls += 1;
        if (calls < 3) ctx.suspend({ wait: "1h" });
        return calls;
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toBe(3);
    expect((await run.executions()).map(({ outcome, state }) => [outcome, state])).toEqual([
      ["continued", "completed"],
      ["continued", "completed"],
      ["success", "completed"],
    ]);
  });

  test("in the handler parks the run and runs the handler again", async () => {
    let passes = 0;
    const wf = workflow("suspending", async (ctx) => {
      passes += 1;
      if (passes < 3) ctx.suspend({ wait: "1h" });
      return passes;
    });
    expect(await outputOf(wf, undefined)).toBe(3);
  });
});

describe("flow control that user code catches", () => {
  test("in a step still takes effect when the step returns", async () => {
    const wf = workflow("swallowed", async (ctx) => [
      await ctx.step("optional", () => {
        try {
          ctx.skip();
        } catch {
          // The catch block swallows the flow control by accident.
        }
        return "not skipped";
      }),
    ]);
    expect(await outputOf(wf, undefined)).toEqual([undefined]);
  });

  test("in a step still takes effect when the step throws another error instead", async () => {
    const wf = workflow("replaced", (ctx) =>
      ctx.step("decide", () => {
        try {
          ctx.finish("finished");
        } catch {
          throw new Error("instead");
        }
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(await run.result()).toBe("finished");
  });

  test.each(["cancel", "pause", "finish", "skip"] as const)(
    "in the handler: ctx.%s() takes effect when the handler returns",
    async (action) => {
      const wf = workflow("swallowed", async (ctx) => {
        try {
          ctx[action]();
        } catch {
          // The catch block swallows the flow control by accident.
        }
        return "ignored";
      });
      const t = await start(wf);
      const run = await t.pawl.start(wf);
      await t.settle();
      expect(await run.status()).toBe(
        { cancel: "canceled", pause: "paused", finish: "completed", skip: "completed" }[action],
      );
      if (action === "finish" || action === "skip") expect(await run.result()).toBeUndefined();
    },
  );

  test("in the handler takes effect, and is not attributed to a step that runs in the catch block", async () => {
    let reported = 0;
    const wf = workflow("reporting", async (ctx) => {
      try {
        ctx.finish("finished");
      } catch {
        await ctx.step("report", () => void (reported += 1));
      }
      return "ignored";
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.result()).toBe("finished");
  });

  test("in one step has no effect on parallel steps", async () => {
    const finish = gate();
    const wf = workflow("beside", async (ctx) =>
      Promise.all([
        ctx.step("skipper", async () => {
          try {
            ctx.skip();
          } catch {
            await finish.opened;
          }
          return "skipper";
        }),
        ctx
          .step("worker", async () => "worker")
          .then((value) => {
            finish.open();
            return value;
          }),
      ]),
    );
    expect(await outputOf(wf, undefined)).toEqual([undefined, "worker"]);
  });

  test("in a step with a time limit has no effect on parallel steps", async () => {
    const wf = workflow("beside", async (ctx) =>
      Promise.all([
        ctx.step("skipper", () => ctx.skip(), { timeout: "10s" }),
        ctx.step("worker", () => "worker"),
        ctx.step("other", () => "other"),
      ]),
    );
    expect(await outputOf(wf, undefined)).toEqual([undefined, "worker", "other"]);
  });
});
