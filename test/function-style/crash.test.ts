import { PauseError, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

describe("a run that kills its worker", () => {
  test("is paused after 5 deliveries, with an error that says so, and continues when it is resumed", async () => {
    let harmless = false;
    let executions = 0;
    const started: (() => void)[] = [];
    const wf = workflow("poison", (ctx) =>
      ctx.step("poison", async () => {
        executions += 1;
        if (harmless) return "cured";
        started.shift()?.();
        return new Promise<string>(() => {});
      }),
    );
    const fine = workflow("fine", async () => "fine");
    const w = await world();
    const run = await w.pawl.start(wf);
    for (let deaths = 0; deaths < 5; deaths += 1) {
      const died = gate();
      started.push(() => died.open());
      const worker = await w.worker([wf, fine]);
      await died.opened;
      await worker.kill();
    }
    const survivor = await w.worker([wf, fine]);
    await survivor.settle();
    expect(executions).toBe(5);
    expect(await run.status()).toBe("paused");
    const paused = (await run.history()).findLast(({ type }) => type === "run.paused");
    expect(paused).toMatchObject({
      type: "run.paused",
      data: { reason: expect.stringContaining("5 times"), error: { code: "QUARANTINED" } },
    });
    const other = await w.pawl.start(fine);
    await survivor.settle();
    expect(await other.result()).toBe("fine");
    expect((await w.pawl.verify()).differences).toEqual([]);
    harmless = true;
    await run.resume();
    await survivor.settle();
    expect(await run.result()).toBe("cured");
  });

  test("resets its crash count each time it has been parked normally", async () => {
    const started: (() => void)[] = [];
    let safe = false;
    const wf = workflow("risky", async (ctx) => {
      for (let part = 0; part < 3; part += 1) {
        await ctx.step("risky", () => {
          if (safe) return undefined;
          started.shift()?.();
          return new Promise(() => {});
        });
        await ctx.sleep("rest", "1h");
      }
      return "done";
    });
    const w = await world();
    const run = await w.pawl.start(wf);
    for (let part = 0; part < 3; part += 1) {
      safe = false;
      for (let deaths = 0; deaths < 3; deaths += 1) {
        const died = gate();
        started.push(() => died.open());
        const worker = await w.worker([wf]);
        await died.opened;
        await worker.kill();
      }
      safe = true;
      const worker = await w.worker([wf]);
      const due = await worker.settle();
      await worker.kill();
      if (due !== null) w.clock.moveTo(due);
    }
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("done");
  });

  test("tells its code how often it was started", async () => {
    const attempts: number[] = [];
    const started = gate();
    const wf = workflow("counted", async (ctx) => {
      attempts.push(ctx.attempt);
      return ctx.step("hang", () => {
        started.open();
        return attempts.length === 1 ? new Promise(() => {}) : "through";
      });
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await first.kill();
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("through");
    expect(attempts).toEqual([1, 2]);
    expect(await logOf(run)).toContain("run.recovered");
  });
});

describe("worker.stop", () => {
  test("lets a running step finish, records it and releases the run: no step runs twice", async () => {
    const executed: string[] = [];
    const started = gate();
    const finish = gate();
    const wf = workflow("handed-over", async (ctx) => {
      await ctx.step("first", async () => {
        executed.push("first");
        started.open();
        await finish.opened;
      });
      await ctx.step("second", () => void executed.push("second"));
      return "done";
    });
    const w = await world();
    const first = await w.worker([wf], { grace: "10s" });
    const run = await w.pawl.start(wf);
    await started.opened;
    const stopped = first.worker.stop();
    finish.open();
    await stopped;
    expect(executed).toEqual(["first"]);
    expect(await logOf(run)).toContain("step.completed first");
    expect(await run.status()).toBe("waiting");
    expect((await w.pawl.verify()).differences).toEqual([]);
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("done");
    expect(executed).toEqual(["first", "second"]);
    expect(await logOf(run)).not.toContain("run.recovered");
  });

  test("abandons a step that does not end within the grace period, and aborts its signal", async () => {
    const started = gate();
    const aborted = gate();
    let executions = 0;
    const wf = workflow("stubborn", (ctx) =>
      ctx.step("endless", ({ abortSignal }) => {
        executions += 1;
        if (executions > 1) return "second";
        abortSignal.addEventListener("abort", () => aborted.open());
        started.open();
        return new Promise<string>(() => {});
      }),
    );
    const w = await world();
    const first = await w.worker([wf], { grace: 20 });
    const run = await w.pawl.start(wf);
    await started.opened;
    await first.worker.stop();
    await aborted.opened;
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("second");
  });

  test("claims no new runs; runs that are started meanwhile wait for the next worker", async () => {
    const wf = workflow("waiting-room", async () => "done");
    const w = await world();
    const first = await w.worker([wf]);
    await first.worker.stop();
    expect(first.worker.phase).toBe("stopped");
    const run = await w.pawl.start(wf);
    expect(await run.status()).toBe("pending");
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("done");
  });

  test("at any moment after a run was woken up loses no signal or timer that woke it", async () => {
    const wf = workflow("woken", async (ctx) => {
      const [go] = await Promise.all([ctx.waitForSignal("go"), ctx.sleep("nap", "1ms")]);
      return go;
    });
    for (let moments = 0; moments < 40; moments += 1) {
      const w = await world();
      const first = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await first.settle();
      w.clock.moveTo(w.clock.read() + 10);
      await run.signal("go", moments);
      for (let n = 0; n < moments >> 1; n += 1) {
        if (moments % 2 === 0) await Promise.resolve();
        else await new Promise((resolve) => setImmediate(resolve));
      }
      await first.worker.stop();
      await (await w.worker([wf])).settle();
      expect(await run.status(), `stopped after ${moments}`).toBe("completed");
      expect(await run.result()).toBe(moments);
    }
  });

  test("may be called twice, and before start()", async () => {
    const wf = workflow("twice", async () => 1);
    const w = await world();
    const worker = w.pawl.worker({ workflows: [wf] });
    await worker.stop();
    await worker.stop();
    await expect(worker.start()).rejects.toMatchObject({ code: "INVALID_STATE" });
    const second = await w.worker([wf]);
    await Promise.all([second.worker.stop(), second.worker.stop()]);
    expect((await w.pawl.workers()).filter(({ live }) => live)).toEqual([]);
  });
});

test("a pause is logged once, no matter what paused the run", async () => {
  const logged: string[] = [];
  const logTo = (level: string) => (message: unknown) => void logged.push(`${level}: ${message}`);
  const logger = { debug: () => {}, info: logTo("info"), warn: logTo("warn"), error: logTo("error") };
  const w = await world("memory", "memory:", logger);
  const pausedByError = workflow("by-itself", (ctx) =>
    ctx.step("pay", () => {
      throw new PauseError("The bank is closed.");
    }),
  );
  const pausedByCode = workflow("on-purpose", (ctx) => ctx.pause("look at it"));
  let name = "a";
  const renamed = workflow("renamed", async (ctx) => {
    await ctx.step(name, () => 1);
    await ctx.waitForSignal("go");
  });
  const { settle } = await w.worker([pausedByError, renamed, pausedByCode]);
  const [first, second] = [await w.pawl.start(pausedByError), await w.pawl.start(renamed)];
  await settle();
  const third = await w.pawl.start(pausedByCode);
  await settle();
  name = "b";
  await second.signal("go");
  await settle();
  expect(logged).toEqual([
    `info: Run ${first.id} (by-itself) is paused: The bank is closed.`,
    `info: Run ${third.id} (on-purpose) is paused: look at it`,
    expect.stringContaining(`warn: Run ${second.id} (renamed) is paused: `),
  ]);
  await first.signal("anything");
  await settle();
  expect(logged).toHaveLength(3);
});

describe("pause and resume while a step runs", () => {
  test("pause lets the running step finish and starts nothing new", async () => {
    const started = gate();
    const finish = gate();
    const executed: string[] = [];
    const wf = workflow("pausable", async (ctx) => {
      await ctx.step("first", async () => {
        executed.push("first");
        started.open();
        await finish.opened;
      });
      await ctx.step("second", () => void executed.push("second"));
    });
    const w = await world();
    const { settle } = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await run.pause("a moment");
    await until(async () => (await logOf(run)).includes("run.paused"));
    finish.open();
    await settle();
    expect(await run.status()).toBe("paused");
    expect(executed).toEqual(["first"]);
    expect(await logOf(run)).toContain("step.completed first");
    await run.resume();
    await settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["first", "second"]);
  });

  test("a resume that arrives while the paused run's step still runs does not prevent its later steps from running", async () => {
    const started = gate();
    const quick = gate();
    const finish = gate();
    const wf = workflow("resumed-early", async (ctx) =>
      Promise.all([
        ctx.step("slow", async () => {
          started.open();
          await finish.opened;
          return "slow";
        }),
        ctx
          .step("quick", async () => {
            await quick.opened;
          })
          .then(() => ctx.step("next", () => "next")),
      ]),
    );
    const w = await world();
    const { settle } = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await run.pause();
    await until(async () => (await logOf(run)).includes("run.paused"));
    quick.open();
    await until(async () => (await logOf(run)).includes("step.completed quick"));
    await run.resume();
    await until(async () => (await logOf(run)).includes("run.resumed"));
    finish.open();
    await settle();
    expect(await run.status()).toBe("completed");
    expect(await run.result()).toEqual(["slow", "next"]);
  });

  test("cancel aborts the step's signal, records its result if it arrives, and then ends the run", async () => {
    const started = gate();
    const wf = workflow("cancelable", async (ctx) => {
      await ctx.step("polite", async ({ abortSignal }) => {
        started.open();
        await new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
        return "stopped half way";
      });
      await ctx.step("never", () => 1);
    });
    const w = await world();
    const { settle } = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await run.cancel("enough");
    await settle();
    expect(await run.status()).toBe("canceled");
    expect(await logOf(run)).toEqual(expect.arrayContaining(["step.completed polite", "run.canceled"]));
    expect(await logOf(run)).not.toContain("step.completed never");
  });

  test("cancel ends a run whose step ignores the abort signal, after the grace period", async () => {
    const started = gate();
    const wf = workflow("deaf", (ctx) =>
      ctx.step("deaf", () => {
        started.open();
        return new Promise(() => {});
      }),
    );
    const w = await world();
    const { settle } = await w.worker([wf], { grace: 20 });
    const run = await w.pawl.start(wf);
    await started.opened;
    await run.cancel();
    await settle();
    expect(await run.status()).toBe("canceled");
  });

  test("a compensation that takes longer than the grace period of the cancel is not parked while it runs", async () => {
    const [begun, undone] = [gate(), gate()];
    const compensate = async () => {
      begun.open();
      await undone.opened;
    };
    const wf = workflow("undoing", async (ctx) => {
      await ctx.step("book", () => 1, { compensate });
      await ctx.waitForSignal("never");
    });
    const w = await world();
    const { settle } = await w.worker([wf], { grace: 1 });
    const run = await w.pawl.start(wf);
    await settle();
    await run.cancel();
    const settled = settle();
    await begun.opened;
    // Timers fire in the order of their instants: the one of the grace period was set before.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await w.store.tasks([run.id])).map(({ state }) => state)).toEqual(["owned"]);
    undone.open();
    await settled;
    expect(await run.status()).toBe("canceled");
  });
});
