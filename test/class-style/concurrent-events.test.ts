/** Events that happen to a run of a class at the same time, and which of them takes effect. */
import { Pawl, PermanentError, Workflow } from "pawl";
import { expect, test } from "vitest";
import { z } from "zod";
import { working } from "../support/class-workflows.js";
import { attemptsOf, expectSound, recorded } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const boom = () => {
  throw new Error("boom");
};

test("a step that failed for good while the run was being paused: when it is resumed, the run fails instead of continuing after the step", async () => {
  const started = gate();
  const finish = gate();
  const X = working(async () => {
    started.open();
    await finish.opened;
    throw new PermanentError("no");
  });
  const t = await start(X);
  const run = await t.pawl.start(X);
  void t.settle();
  await started.opened;
  await run.pause();
  await recorded(run, "run.paused");
  finish.open();
  await t.settle();
  await run.resume();
  await t.settle();
  expect(await attemptsOf(run)).toEqual(["work 1 failed failed_by_exception"]);
  expect(await run.status()).toBe("failed");
});

test("a step that failed for good while its worker was stopping: the next worker fails the run", async () => {
  const started = gate();
  const finish = gate();
  const X = working(async () => {
    started.open();
    await finish.opened;
    throw new PermanentError("no");
  });
  const w = await world();
  const first = await w.worker([X], { grace: "10s" });
  const run = await w.pawl.start(X);
  await started.opened;
  const stopped = first.worker.stop();
  finish.open();
  await stopped;
  await (await w.worker([X])).settle();
  expect(await attemptsOf(run)).toEqual(["work 1 failed failed_by_exception"]);
  expect(await run.status()).toBe("failed");
});

test("a worker dies between the commit of the failed step and that of the failed run: the next worker fails the run", async () => {
  const X = working(boom, { onException: "fail" });
  const w = await world();
  const run = await w.pawl.start(X);
  let deadWorkerStore = false;
  let fence: any = null;
  const store = new Proxy(w.store, {
    get(target, name) {
      const member = Reflect.get(target, name) as any;
      if (typeof member !== "function") return member;
      return (...args: any[]) => {
        if (deadWorkerStore) return name === "watch" ? () => {} : new Promise(() => {});
        const result = member.apply(target, args);
        if (!(result instanceof Promise)) return result;
        return result.then((answer: any) => {
          if (name === "registerWorker") fence = answer;
          if (name === "commit" && JSON.stringify(args[0]).includes("step.failed")) deadWorkerStore = true;
          return deadWorkerStore ? new Promise(() => {}) : answer;
        });
      };
    },
  });
  await new Pawl(store).worker({ workflows: [X] }).start();
  await until(() => deadWorkerStore);
  await w.store.deregisterWorker(fence);
  await (await w.worker([X])).settle();
  expect(await attemptsOf(run)).toEqual(["work 1 failed failed_by_exception"]);
  expect(await run.status()).toBe("failed");
});

test("an onFailure that fails once is retried, and the run fails", async () => {
  let calls = 0;
  const X = working(
    boom,
    { onException: "fail" },
    {
      onFailure: () => {
        calls += 1;
        if (calls === 1) throw new Error("the mail server is down");
      },
    },
  );
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.advance("1h");
  expect((await run.get()).pauseReason).toBeNull();
  expect(await run.status()).toBe("failed");
  expect(calls).toBe(2);
});

test("an onFailure whose worker dies is called again, and the run fails", async () => {
  let calls = 0;
  const X = working(
    boom,
    { onException: "fail" },
    {
      onFailure: async () => {
        calls += 1;
        if (calls === 1) await new Promise(() => {});
      },
    },
  );
  const w = await world();
  const first = await w.worker([X]);
  const run = await w.pawl.start(X);
  await recorded(run, "step.started on_failure");
  await first.kill();
  await (await w.worker([X])).settle();
  expect((await run.get()).pauseReason).toBeNull();
  expect(await run.status()).toBe("failed");
  expect(calls).toBe(2);
});

test("finish() with an asynchronous output schema ends the run, and no other step starts", async () => {
  class X extends Workflow<unknown, void, string> {
    static {
      this.options({
        output: z.string().refine(async () => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          return true;
        }),
      });
      this.step("a", async (w) => {
        await new Promise((resolve) => setTimeout(resolve, 2));
        w.finish("a");
      });
      this.step("b", (w) => w.finish("b"));
    }
  }
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.settle();
  expect(await attemptsOf(run)).toEqual(["a 1 completed success"]);
  expect(await run.result({ timeout: "100s" })).toBe("a");
});

test("finish() in the turn that starts a child is not lost in a crash", async () => {
  const child = working(() => {}, { wait: "1 day" }, { name: "child" });
  class X extends Workflow<unknown, void, string> {
    static {
      this.step("a", (w) => {
        void w.start(child, undefined);
        w.finish("a");
      });
      this.step("b", (w) => w.finish("b"));
    }
  }
  const t = await start(X, child);
  expect((await t.crashTest(X, undefined)).output).toBe("a");
});

test("resumeAt is refused while the step of a run that is being paused still runs; once the step has ended, it moves the run", async () => {
  const started = gate();
  const finish = gate();
  const executed: string[] = [];
  class X extends Workflow {
    static {
      this.step("a", async () => {
        executed.push("a");
        started.open();
        await finish.opened;
      });
      this.step("b", () => void executed.push("b"));
      this.step("c", () => void executed.push("c"));
    }
  }
  const t = await start(X);
  const run = await t.pawl.start(X);
  void t.settle();
  await started.opened;
  await run.pause();
  await recorded(run, "run.paused");
  expect(await errorOf(run.resumeAt("c"))).toMatchObject({ code: "INVALID_STATE" });
  finish.open();
  await t.settle();
  expect(await run.status()).toBe("paused");
  await run.resumeAt("c");
  await t.settle();
  expect(executed).toEqual(["a", "c"]);
});

test("a skipIf that the body itself makes true does not cut the body off at its next durable wait", async () => {
  const user = { welcomed: false };
  const done: string[] = [];
  const X = working(
    async (w) => {
      await w.step("send", () => {
        user.welcomed = true;
      });
      done.push("sent");
      await w.sleep("nap", "1 day");
      done.push("rested");
    },
    { skipIf: () => user.welcomed },
  );
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.speedrun(run);
  expect(done.at(-1)).toBe("rested");
  expect((await attemptsOf(run))[0]).toBe("work 1 completed success");
});

test("a policy function that throws pauses the run, so that it can be repaired", async () => {
  const X = working(boom, {
    onException: () => {
      throw new Error("a bug in the policy");
    },
  });
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.settle();
  expect(await run.status()).toBe("paused");
});

test("a scheduled execution does not vanish from executions() when its run is canceled", async () => {
  const X = working((w) => w.reattempt({ wait: "1 day" }));
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.settle();
  expect(await attemptsOf(run)).toEqual(["work 1 completed reattempted", "work 2 scheduled –"]);
  await run.cancel();
  expect(await attemptsOf(run)).toEqual(["work 1 completed reattempted", "work 2 canceled canceled_by_flow_control"]);
});

test.each([
  ["returns keeps its result", (): string => "done", ["work 2 completed success"]],
  [
    "throws is followed by the skip",
    boom,
    ["work 2 failed reattempted_by_exception", "work 3 skipped skipped_by_flow_control"],
  ],
  [
    "asks for another is followed by the skip",
    (w: { reattempt(): never }) => w.reattempt(),
    ["work 2 completed reattempted", "work 3 skipped skipped_by_flow_control"],
  ],
])("skip() during an attempt acts when it has ended: one that %s", async (_what, end, attempts) => {
  const started = gate();
  const finish = gate();
  const X = working(async (w) => {
    if (w.attempt === 1) w.reattempt();
    started.open();
    await finish.opened;
    return end(w);
  });
  const t = await start(X);
  const run = await t.pawl.start(X);
  void t.settle();
  await started.opened;
  await run.skip();
  // The worker reads the messages in order, so it has read the command when it has received the signal.
  await run.signal("later");
  await recorded(run, "signal.received");
  finish.open();
  await t.settle();
  expect((await attemptsOf(run)).slice(1)).toEqual([...attempts, "after 1 completed success"]);
  await expectSound(t);
});

test("a second pause of a run that is executing is refused, like that of a parked run", async () => {
  const started = gate();
  const finish = gate();
  const X = working(async () => {
    started.open();
    await finish.opened;
  });
  const t = await start(X);
  const run = await t.pawl.start(X);
  void t.settle();
  await started.opened;
  await run.pause("one");
  await recorded(run, "run.paused");
  const error = await errorOf(run.pause("two")).catch(() => null);
  finish.open();
  await t.settle();
  expect(error).toMatchObject({ code: "INVALID_STATE" });
});

test("the time limit of a step includes the durable waits of its body", async () => {
  const X = working((w) => w.waitForSignal("approved"), { timeout: "1h" });
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.advance("2h");
  expect((await attemptsOf(run))[0]).toBe("work 1 failed timed_out");
});

test("maxReattempts of a rule is validated like that of a step", () => {
  expect(() => working(boom, { onException: { action: "reattempt", maxReattempts: Number.NaN } })).toThrow(
    /maxReattempts/,
  );
});

test("resume({ output }) completes a step that is parked in the middle, just as skip() skips it", async () => {
  const X = working((w) => w.waitForSignal("go"));
  const t = await start(X);
  const run = await t.pawl.start(X);
  await t.settle();
  await run.pause();
  await run.resume({ output: "by hand" });
  await t.settle();
  expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
});

test("skip() of a step cancels its children", async () => {
  const child = working(() => {}, { wait: "10 days" }, { name: "child" });
  class X extends Workflow {
    static {
      this.step("a", async (w) => void (await w.run(child)));
      this.step("b", { wait: "1 day" }, () => {});
    }
  }
  const t = await start(X, child);
  const run = await t.pawl.start(X);
  await t.settle();
  await run.skip();
  await t.settle();
  expect((await t.pawl.runs({ workflow: child })).runs).toMatchObject([{ status: "canceled" }]);
});
