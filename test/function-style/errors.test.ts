import { PauseError, PermanentError, TransientError, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

describe("PermanentError", () => {
  test("ends its step and the run at once", async () => {
    let attempts = 0;
    const wf = workflow("permanent", (ctx) =>
      ctx.step("check", () => {
        attempts += 1;
        throw new PermanentError("card expired");
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(attempts).toBe(1);
    const error = await errorOf(run.result());
    expect(error.cause).toBeInstanceOf(PermanentError);
    expect(error.cause.message).toBe("card expired");
    expect(await run.get()).toMatchObject({ status: "failed", error: { message: "card expired" } });
  });

  test("of a user's own subclass ends the step and the run too", async () => {
    class CardExpired extends PermanentError {
      override name = "CardExpired";
    }
    let attempts = 0;
    const wf = workflow("subclass", (ctx) =>
      ctx.step("check", () => {
        attempts += 1;
        throw new CardExpired("4242");
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(attempts).toBe(1);
    expect((await errorOf(run.result())).cause).toMatchObject({ name: "CardExpired", message: "4242" });
  });

  test("in the handler fails the run", async () => {
    const wf = workflow("handler", async () => {
      throw new PermanentError("nobody approved");
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await errorOf(run.result())).message).toContain("nobody approved");
  });
});

describe("TransientError", () => {
  test("parks a step for the requested time and does not count against its attempts", async () => {
    const at: number[] = [];
    const wf = workflow("transient", (ctx) =>
      ctx.step(
        "call",
        () => {
          at.push(t.clock.read());
          if (at.length <= 10) throw new TransientError("busy", { retryAfter: "7 minutes" });
          return "through";
        },
        { retry: { attempts: 2 } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toBe("through");
    expect(at).toHaveLength(11);
    expect(at.slice(1).map((time, index) => time - (at[index] as number))).toEqual(Array(10).fill(420_000));
  });

  test("does not use up the attempts of the retry policy, which stay available for other errors", async () => {
    const thrown = [new TransientError("busy"), new Error("1"), new TransientError("busy"), new Error("2")];
    let calls = 0;
    const wf = workflow("mixed", (ctx) =>
      ctx.step(
        "call",
        () => {
          throw thrown[calls++];
        },
        { retry: { attempts: 2 } },
      ),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(calls).toBe(4);
    expect((await errorOf(run.result())).cause.message).toBe("2");
  });

  test("in the handler parks the run, which then runs its handler again with the recorded steps", async () => {
    let tries = 0;
    let steps = 0;
    const wf = workflow("handler", async (ctx) => {
      await ctx.step("once", () => {
        steps += 1;
      });
      tries += 1;
      if (tries < 3) throw new TransientError("not yet", { retryAfter: "1 hour" });
      return ctx.now().getTime();
    });
    const t = await start(wf);
    const begin = t.clock.read();
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(tries).toBe(3);
    expect(steps).toBe(1);
    expect(t.clock.read() - begin).toBe(2 * 3_600_000);
    expect(await run.status()).toBe("completed");
  });

  test("frees the worker for other runs meanwhile", async () => {
    const wf = workflow("one-slot", async (ctx, busy: boolean) => {
      await ctx.step("call", ({ attempt }) => {
        if (busy && attempt === 1) throw new TransientError("busy", { retryAfter: "1 day" });
      });
      return "done";
    });
    const w = await world();
    const worker = await w.worker([wf], { concurrency: 1 });
    const stuck = await w.pawl.start(wf, true);
    const other = await w.pawl.start(wf, false);
    await worker.settle();
    expect(await other.status()).toBe("completed");
    expect(await stuck.get()).toMatchObject({ status: "waiting", waitingFor: [{ kind: "retry", step: "call" }] });
  });
});

describe("PauseError", () => {
  test("pauses the run at the step; resume() runs the step again", async () => {
    let repaired = false;
    let calls = 0;
    const wf = workflow("paused", (ctx) =>
      ctx.step("call", () => {
        calls += 1;
        if (!repaired) throw new PauseError("the account is locked");
        return "through";
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect((await run.history()).at(-1)).toMatchObject({
      type: "run.paused",
      node: "call",
      data: { reason: "the account is locked" },
    });
    expect(await run.executions()).toMatchObject([{ state: "canceled", outcome: "workflow_paused", error: null }]);
    await t.advance("100 days");
    expect(calls).toBe(1);
    repaired = true;
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe("through");
    expect(calls).toBe(2);
  });

  test("can be resolved with resume({ output }) or skip()", async () => {
    const wf = workflow("answered", async (ctx) => [
      await ctx.step("call", () => {
        throw new PauseError("ask somebody");
      }),
    ]);
    const t = await start(wf);
    const answered = await t.pawl.start(wf);
    const skipped = await t.pawl.start(wf);
    await t.settle();
    await answered.resume({ output: "by hand" });
    await skipped.skip();
    await t.settle();
    expect(await answered.result()).toEqual(["by hand"]);
    expect(await skipped.result()).toEqual([undefined]);
  });

  test("with resumeOn resumes the run on that signal, and not on another", async () => {
    let unlocked = false;
    const wf = workflow("resume-on", (ctx) =>
      ctx.step("call", () => {
        if (!unlocked) throw new PauseError("locked", { resumeOn: "unlocked" });
        return "through";
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("something_else");
    await t.settle();
    expect(await run.status()).toBe("paused");
    unlocked = true;
    await run.signal("unlocked");
    await t.settle();
    expect(await run.result()).toBe("through");
    expect(await logOf(run)).toContain("run.resumed");
  });

  test("with resumeOn also resumes the run when the signal arrived while the step was still running", async () => {
    const started = gate();
    const fail = gate();
    let calls = 0;
    const wf = workflow("crossing", (ctx) =>
      ctx.step("call", async () => {
        calls += 1;
        if (calls > 1) return "through";
        started.open();
        await fail.opened;
        throw new PauseError("locked", { resumeOn: "unlocked" });
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    void t.settle();
    await started.opened;
    await run.signal("unlocked");
    fail.open();
    await t.settle();
    expect(await run.status()).toBe("completed");
  });

  test("with recheckAfter runs the step again after each interval", async () => {
    const at: number[] = [];
    const wf = workflow("recheck", (ctx) =>
      ctx.step("call", () => {
        at.push(t.clock.read());
        if (at.length < 4) throw new PauseError("not ready", { recheckAfter: "6 hours" });
        return "ready";
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("paused");
    await t.advance("5 hours");
    expect(at).toHaveLength(1);
    await t.speedrun(run);
    expect(await run.result()).toBe("ready");
    expect(at.slice(1).map((time, index) => time - (at[index] as number))).toEqual(Array(3).fill(6 * 3_600_000));
  });

  test("does not use up the attempts of the retry policy", async () => {
    let calls = 0;
    const wf = workflow("not-counted", (ctx) =>
      ctx.step(
        "call",
        () => {
          calls += 1;
          if (calls <= 3) throw new PauseError("wait", { recheckAfter: 10 });
          if (calls === 4) throw new Error("one failure");
          return calls;
        },
        { retry: { attempts: 2 } },
      ),
    );
    expect(await outputOf(wf, undefined)).toBe(5);
  });

  test("in the handler pauses the run; resume() runs the handler again", async () => {
    let repaired = false;
    const wf = workflow("handler", async (ctx) => {
      const value = await ctx.step("once", () => 1);
      if (!repaired) throw new PauseError("look at this");
      return value;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.status()).toBe("paused");
    repaired = true;
    await run.resume();
    await t.settle();
    expect(await run.result()).toBe(1);
  });

  test("lets parallel steps finish and keeps their results", async () => {
    const finish = gate();
    let repaired = false;
    let beside = 0;
    const wf = workflow("beside", async (ctx) =>
      Promise.all([
        ctx.step("stuck", () => {
          if (!repaired) throw new PauseError("stuck");
          return "free";
        }),
        ctx.step("beside", async () => {
          beside += 1;
          await finish.opened;
          return "beside";
        }),
      ]),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    finish.open();
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect(await logOf(run)).toContain("step.completed beside");
    repaired = true;
    await run.resume();
    await t.settle();
    expect(await run.result()).toEqual(["free", "beside"]);
    expect(beside).toBe(1);
  });
});

describe("onFailure", () => {
  test("is called once, as a recorded step, with the error, the input and the run", async () => {
    const calls: unknown[] = [];
    const wf = workflow(
      "reported",
      {
        onFailure: ({ runId, workflowName, input, error }) =>
          void calls.push({ runId, workflowName, input, message: error.message }),
      },
      async (ctx, _order: { id: number }) => {
        await ctx.step("charge", () => {
          throw new PermanentError("declined");
        });
      },
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf, { id: 7 });
    await t.speedrun(run);
    expect(calls).toEqual([{ runId: run.id, workflowName: "reported", input: { id: 7 }, message: "declined" }]);
    expect(await run.status()).toBe("failed");
    expect(await logOf(run)).toContain("step.completed on_failure");
  });

  test("is retried like a step; the run fails with its original error, whether or not onFailure succeeds", async () => {
    let calls = 0;
    const wf = workflow(
      "unreported",
      {
        retry: { attempts: 3 },
        onFailure: () => {
          calls += 1;
          throw new Error("mail server down");
        },
      },
      async () => {
        throw new PermanentError("the reason");
      },
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.speedrun(run);
    expect(calls).toBe(3);
    expect((await errorOf(run.result())).cause.message).toBe("the reason");
  });

  test("is not called for runs that complete or are canceled", async () => {
    let calls = 0;
    const wf = workflow("fine", { onFailure: () => void (calls += 1) }, async (ctx, cancel: boolean) => {
      if (cancel) ctx.cancel("no need");
      return 1;
    });
    const t = await start(wf);
    const completed = await t.pawl.start(wf, false);
    const canceled = await t.pawl.start(wf, true);
    await t.settle();
    expect(await completed.status()).toBe("completed");
    expect(await canceled.status()).toBe("canceled");
    expect(calls).toBe(0);
  });

  test("is called when the run exceeds its time limit", async () => {
    const calls: string[] = [];
    const wf = workflow(
      "overdue",
      { timeout: "1 hour", onFailure: ({ error }) => void calls.push(error.name) },
      async (ctx) => {
        await ctx.sleep("too_long", "2 hours");
      },
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf, undefined);
    await t.speedrun(run);
    expect(await run.status()).toBe("failed");
    expect(calls).toEqual(["TimeoutError"]);
  });
});
