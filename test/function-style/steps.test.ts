import { PermanentError, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

describe("a step", () => {
  test("runs once, however often its workflow is replayed, and returns the same value each time", async () => {
    const executed: string[] = [];
    const seen: unknown[] = [];
    const wf = workflow("replayed", async (ctx) => {
      const value = await ctx.step("make", () => {
        executed.push("make");
        return { at: new Date(5), big: 7n, list: [1, undefined] };
      });
      seen.push(value);
      await ctx.sleep("one", "1 day");
      await ctx.sleep("two", "1 day");
      return value;
    });
    const output = await outputOf(wf, undefined);
    expect(executed).toEqual(["make"]);
    expect(seen.length).toBeGreaterThanOrEqual(3);
    for (const value of seen) expect(value).toEqual({ at: new Date(5), big: 7n, list: [1, undefined] });
    expect(output).toEqual({ at: new Date(5), big: 7n, list: [1, undefined] });
  });

  test("returns the recorded value, not the object that its function returned: changing one does not change the other", async () => {
    const kept = { count: 1 };
    const wf = workflow("copies", async (ctx) => {
      const value = await ctx.step("make", () => kept);
      value.count += 1;
      return { value: value.count, kept: kept.count };
    });
    expect(await outputOf(wf, undefined)).toEqual({ value: 2, kept: 1 });
  });

  test("whose name is used again gets #2, #3 in the order of the calls", async () => {
    const wf = workflow("again", async (ctx) => {
      const results = [];
      for (const n of [1, 2, 3]) results.push(await ctx.step("same", () => n));
      return results;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toEqual([1, 2, 3]);
    expect((await logOf(run)).filter((line) => line.startsWith("step."))).toEqual([
      "step.completed same",
      "step.completed same#2",
      "step.completed same#3",
    ]);
  });

  test("records the input that it was given", async () => {
    const wf = workflow("with-input", (ctx) => ctx.step("pay", () => "paid", { input: { amount: 12n } }));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    const paid = (await run.history()).find((event) => event.node === "pay");
    expect(paid?.data).toMatchObject({ input: { amount: 12n }, output: "paid" });
  });

  test("is not disturbed by parallel steps", async () => {
    const wf = workflow("parallel", async (ctx) => {
      const first = gate();
      return Promise.all([
        ctx.step("late", async () => {
          await first.opened;
          return "late";
        }),
        ctx.step("early", async () => {
          first.open();
          return "early";
        }),
      ]);
    });
    expect(await outputOf(wf, undefined)).toEqual(["late", "early"]);
  });

  test("keeps the results of its siblings when it fails", async () => {
    let runs = 0;
    const wf = workflow("siblings", async (ctx) => {
      const settled = await Promise.allSettled([
        ctx.step("good", () => {
          runs += 1;
          return "good";
        }),
        ctx.step("bad", () => {
          throw new PermanentError("bad");
        }),
      ]);
      await ctx.sleep("replay", "1h");
      return settled.map(({ status }) => status);
    });
    expect(await outputOf(wf, undefined)).toEqual(["fulfilled", "rejected"]);
    expect(runs).toBe(1);
  });

  test("that returns nothing has the result undefined", async () => {
    const wf = workflow("nothing", async (ctx) => {
      const value = await ctx.step("nothing", () => {});
      await ctx.sleep("replay", "1h");
      return value === undefined;
    });
    expect(await outputOf(wf, undefined)).toBe(true);
  });
});

describe("a step that throws", () => {
  test("is tried 4 times by default, then the run fails with its error", async () => {
    const attempts: number[] = [];
    const wf = workflow("flaky", (ctx) =>
      ctx.step("call", ({ attempt }) => {
        attempts.push(attempt);
        throw new RangeError("no luck");
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(attempts).toEqual([1, 2, 3, 4]);
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ name: "RunFailedError", code: "RUN_FAILED", runId: run.id });
    expect(error.cause).toBeInstanceOf(RangeError);
    expect(error.cause.message).toBe("no luck");
    expect(await run.status()).toBe("failed");
  });

  test("waits between its attempts as its retry options say", async () => {
    const at: number[] = [];
    const wf = workflow("backoff", (ctx) =>
      ctx.step(
        "call",
        () => {
          at.push(t.clock.read());
          throw new Error("no");
        },
        { retry: { attempts: 5, initial: "1s", factor: 3, max: "20s", jitter: false } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(at.slice(1).map((time, index) => time - (at[index] as number))).toEqual([1_000, 3_000, 9_000, 20_000]);
  });

  test("waits for the delay that its own backoff function returns", async () => {
    const at: number[] = [];
    const wf = workflow("own-backoff", (ctx) =>
      ctx.step(
        "call",
        () => {
          at.push(t.clock.read());
          throw new Error("no");
        },
        { retry: { attempts: 3, backoff: (attempt) => ({ minutes: attempt * 10 }) } },
      ),
    );
    const t = await start(wf);
    await t.speedrun(await t.pawl.start(wf));
    expect(at.slice(1).map((time, index) => time - (at[index] as number))).toEqual([600_000, 1_200_000]);
  });

  test("is parked while it waits, and the run says for which attempt it waits", async () => {
    const wf = workflow("parked", (ctx) =>
      ctx.step("call", () => {
        throw new Error("no");
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.get()).toMatchObject({
      status: "waiting",
      waitingFor: [{ kind: "retry", step: "call", attempt: 2 }],
    });
  });

  test("inherits the workflow's retry options, and its own options override them one by one", async () => {
    const attempts: Record<string, number> = {};
    const fail = (name: string) => () => {
      attempts[name] = (attempts[name] ?? 0) + 1;
      throw new Error("no");
    };
    const wf = workflow("defaults", { retry: { attempts: 2, initial: "1m", jitter: false } }, async (ctx) => {
      await ctx.step("plain", fail("plain")).catch(() => {});
      await ctx.step("own", fail("own"), { retry: { attempts: 3 } }).catch(() => {});
    });
    const t = await start(wf);
    const begin = t.clock.read();
    await t.speedrun(await t.pawl.start(wf, undefined));
    expect(attempts).toEqual({ plain: 2, own: 3 });
    expect(t.clock.read() - begin).toBe(60_000 + 60_000 + 120_000);
  });

  test("is not retried when retryIf returns false", async () => {
    let attempts = 0;
    const wf = workflow("choosy", (ctx) =>
      ctx.step(
        "call",
        () => {
          attempts += 1;
          throw Object.assign(new Error("no"), { status: attempts === 1 ? 503 : 404 });
        },
        { retry: { retryIf: (error) => (error as { status: number }).status === 503 } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(attempts).toBe(2);
    expect(await run.status()).toBe("failed");
  });

  test("fails the run when its own retry options throw", async () => {
    const wf = workflow("broken-retry", (ctx) =>
      ctx.step(
        "call",
        () => {
          throw new Error("first");
        },
        {
          retry: {
            retryIf: () => {
              throw new Error("in retryIf");
            },
          },
        },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await errorOf(run.result())).cause.message).toBe("first");
  });

  test("may be caught by the workflow, on replay too", async () => {
    let attempts = 0;
    const wf = workflow("caught", async (ctx) => {
      let caught = "";
      try {
        await ctx.step(
          "call",
          () => {
            attempts += 1;
            throw new TypeError("no");
          },
          { retry: { attempts: 1 } },
        );
      } catch (error) {
        caught = `${(error as Error).name}: ${(error as Error).message}`;
      }
      await ctx.sleep("replay", "1h");
      return caught;
    });
    expect(await outputOf(wf, undefined)).toBe("TypeError: no");
    expect(attempts).toBe(1);
  });

  test("is counted separately: a sibling that also fails has its own attempts", async () => {
    const attempts: Record<string, number> = {};
    const wf = workflow("both-flaky", async (ctx) => {
      const flaky = (name: string, fails: number) =>
        ctx.step(name, ({ attempt }) => {
          attempts[name] = attempt;
          if (attempt <= fails) throw new Error("not yet");
          return name;
        });
      return Promise.all([flaky("a", 1), flaky("b", 3)]);
    });
    expect(await outputOf(wf, undefined)).toEqual(["a", "b"]);
    expect(attempts).toEqual({ a: 2, b: 4 });
  });

  test("records the name, message, stack, code and cause of its error in the history", async () => {
    const wf = workflow("detailed", (ctx) =>
      ctx.step(
        "call",
        () => {
          throw Object.assign(new TypeError("outer", { cause: new RangeError("inner") }), { code: "E_OUTER" });
        },
        { retry: { attempts: 1 } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    const failed = (await run.history()).find((event) => event.type === "step.failed");
    expect(failed?.data.error).toMatchObject({
      name: "TypeError",
      message: "outer",
      code: "E_OUTER",
      stack: expect.stringContaining("steps.test.ts"),
      cause: { name: "RangeError", message: "inner" },
    });
  });
});

describe("a step with a time limit", () => {
  test("is aborted and retried, and its late result is ignored", async () => {
    const reasons: unknown[] = [];
    const late = gate<string>();
    const wf = workflow("limited", (ctx) =>
      ctx.step(
        "slow",
        async ({ attempt, abortSignal }) => {
          if (attempt > 1) return "second";
          abortSignal.addEventListener("abort", () => reasons.push(abortSignal.reason));
          return late.opened;
        },
        { timeout: 20 },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    late.open("first");
    expect(await run.result()).toBe("second");
    expect(reasons).toMatchObject([{ code: "TIMEOUT" }]);
    expect((await run.executions()).map(({ attempt, state, outcome }) => ({ attempt, state, outcome }))).toEqual([
      { attempt: 1, state: "failed", outcome: "timed_out" },
      { attempt: 2, state: "completed", outcome: "success" },
    ]);
  });

  test("does not crash the process when it rejects after its limit", async () => {
    const late = gate();
    const wf = workflow("late-rejection", (ctx) =>
      ctx.step(
        "slow",
        async () => {
          await late.opened;
          throw new Error("too late");
        },
        { timeout: 10, retry: { attempts: 1 } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    late.open();
    expect((await errorOf(run.result())).cause).toMatchObject({ name: "TimeoutError", code: "TIMEOUT" });
  });
});

describe("the idempotency key of a step", () => {
  test("is the same for every attempt, on every worker, and differs between steps and runs", async () => {
    const keys: Record<string, string[]> = {};
    const note = (name: string, key: string) => (keys[name] ??= []).push(key);
    const wf = workflow("keys", async (ctx, name: string) => {
      await ctx.step("pay", ({ idempotencyKey, attempt }) => {
        note(`${name} pay`, idempotencyKey);
        if (attempt < 3) throw new Error("again");
      });
      await ctx.step("pay", ({ idempotencyKey }) => note(`${name} pay#2`, idempotencyKey));
    });
    const w = await world();
    const first = await w.worker([wf]);
    await w.pawl.start(wf, "a");
    await first.settle();
    await first.kill();
    const second = await w.worker([wf]);
    await w.pawl.start(wf, "b");
    for (let due = await second.settle(); due !== null; due = await second.settle()) w.clock.moveTo(due);
    const distinct = Object.values(keys).map((some) => [...new Set(some)]);
    expect(Object.keys(keys).sort()).toEqual(["a pay", "a pay#2", "b pay", "b pay#2"]);
    for (const some of distinct) expect(some).toHaveLength(1);
    expect(new Set(distinct.flat()).size).toBe(4);
    expect(keys["a pay"]).toHaveLength(3);
  });
});

describe("executions()", () => {
  test("lists every attempt at every step with its state, outcome, times and error", async () => {
    const wf = workflow("listed", async (ctx) => {
      await ctx.step("flaky", ({ attempt }) => {
        if (attempt === 1) throw new Error("once");
      });
      await ctx.step("passed", () => ctx.skip());
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    const executions = await run.executions();
    expect(executions.map(({ step, attempt, state, outcome }) => [step, attempt, state, outcome])).toEqual([
      ["flaky", 1, "failed", "reattempted_by_exception"],
      ["flaky", 2, "completed", "success"],
      ["passed", 1, "skipped", "skipped_by_flow_control"],
    ]);
    expect(executions[0]?.error?.message).toBe("once");
    expect(new Set(executions.map(({ id }) => id)).size).toBe(3);
    for (const { startedAt, finishedAt } of executions)
      expect(finishedAt?.getTime()).toBeGreaterThanOrEqual(startedAt?.getTime() ?? Number.NaN);
  });

  test("shows a long step while it runs, and shows it as abandoned after its worker died", async () => {
    const started = gate();
    let calls = 0;
    const wf = workflow("long", (ctx) =>
      ctx.step("long", async ({ attempt }) => {
        calls += 1;
        started.open();
        return attempt === 1 ? new Promise<number>(() => {}) : attempt;
      }),
    );
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await until(async () => (await run.executions()).length === 1);
    expect(await run.executions()).toMatchObject([{ step: "long", attempt: 1, state: "executing", finishedAt: null }]);
    expect(await run.status()).toBe("running");
    await first.kill();
    const second = await w.worker([wf]);
    await second.settle();
    expect(await run.result()).toBe(2);
    expect(calls).toBe(2);
    expect(await run.executions()).toMatchObject([
      { attempt: 1, state: "failed", outcome: "abandoned" },
      { attempt: 2, state: "completed", outcome: "success" },
    ]);
  });
});

describe("onCrash", () => {
  async function crashed(onCrash: "rerun" | "pause") {
    const executed: number[] = [];
    const started = gate();
    const wf = workflow("crashing", async (ctx) => {
      const value = await ctx.step(
        "charge",
        async ({ attempt }) => {
          executed.push(attempt);
          if (executed.length > 1) return "charged again";
          started.open();
          return new Promise<string>(() => {});
        },
        { onCrash },
      );
      return { value };
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await first.kill();
    const second = await w.worker([wf]);
    await second.settle();
    return { run, executed, second, w };
  }

  test('"rerun" runs the step again when its worker died', async () => {
    const { run, executed } = await crashed("rerun");
    expect(await run.result()).toEqual({ value: "charged again" });
    expect(executed).toHaveLength(2);
  });

  test('"pause" runs the step at most once and pauses the run for a person', async () => {
    const { run, executed, w } = await crashed("pause");
    expect(await run.status()).toBe("paused");
    expect(executed).toEqual([1]);
    const paused = (await run.history()).findLast((event) => event.type === "run.paused");
    expect(paused).toMatchObject({ node: "charge", data: { reason: expect.stringContaining('"charge"') } });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test('after "pause", resume() runs the step again', async () => {
    const { run, executed, second } = await crashed("pause");
    await run.resume();
    await second.settle();
    expect(await run.result()).toEqual({ value: "charged again" });
    expect(executed).toEqual([1, 2]);
  });

  test('after "pause", skip() skips the step', async () => {
    const { run, executed, second } = await crashed("pause");
    await run.skip();
    await second.settle();
    expect(await run.result()).toEqual({ value: undefined });
    expect(executed).toEqual([1]);
  });

  test('after "pause", resume({ output }) sets the result of the step', async () => {
    const { run, executed, second } = await crashed("pause");
    await run.resume({ output: "by hand" });
    await second.settle();
    expect(await run.result()).toEqual({ value: "by hand" });
    expect(executed).toEqual([1]);
    expect((await run.executions()).at(-1)).toMatchObject({ step: "charge", state: "completed" });
  });

  test('after "pause", resume({ output: undefined }) sets a result too', async () => {
    const { run, executed, second } = await crashed("pause");
    await run.resume({ output: undefined });
    await second.settle();
    expect(await run.result()).toEqual({ value: undefined });
    expect(executed).toEqual([1]);
  });

  test('with "pause" a step that ends without a crash behaves like any other: retried, recorded, not paused', async () => {
    const attempts: number[] = [];
    const wf = workflow("calm", (ctx) =>
      ctx.step(
        "charge",
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error("again");
          return "charged";
        },
        { onCrash: "pause" },
      ),
    );
    expect(await outputOf(wf, undefined)).toBe("charged");
    expect(attempts).toEqual([1, 2, 3]);
  });
});

describe("invalid arguments of a step", () => {
  test.each([
    ["an empty name", (ctx: any) => ctx.step("", () => 1)],
    ["a name with #", (ctx: any) => ctx.step("a#2", () => 1)],
    ["no function", (ctx: any) => ctx.step("a")],
    ["an invalid time limit", (ctx: any) => ctx.step("a", () => 1, { timeout: "soon" })],
    ["a time limit that is NaN", (ctx: any) => ctx.step("a", () => 1, { timeout: Number.NaN })],
    ["an unknown retry option", (ctx: any) => ctx.step("a", () => 1, { retry: { times: 3 } })],
    ["zero attempts", (ctx: any) => ctx.step("a", () => 1, { retry: { attempts: 0 } })],
    ["an unknown onCrash", (ctx: any) => ctx.step("a", () => 1, { onCrash: "explode" })],
  ])("%s fails the run with an InvalidInputError", async (_what, body) => {
    const wf = workflow("bad-step", async (ctx) => body(ctx));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect((await errorOf(run.result())).cause).toMatchObject({ code: "INVALID_INPUT" });
  });
});
