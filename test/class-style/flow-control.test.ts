/** Flow control from inside a step, and commands from outside, in every state that a run can be in. */
import { Workflow } from "pawl";
import type { TestPawl } from "pawl/testing";
import { describe, expect, test } from "vitest";
import { working } from "../support/class-workflows.js";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf, expectSound, logOf, passedOver, recorded, refused } from "../support/run-checks.js";
import { databaseFor, start, startInMemory } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

const leaveBy = {
  cancel: (w: Workflow) => w.cancel("enough"),
  pause: (w: Workflow) => w.pause("look"),
  skip: (w: Workflow) => w.skip(),
  reattempt: (w: Workflow) => w.reattempt({ wait: "1h" }),
  finish: (w: Workflow) => w.finish(),
  suspend: (w: Workflow) => w.suspend({ wait: "1h" }),
} as const;

type Action = keyof typeof leaveBy;

/** The result of each action, whatever the code around it does. */
const consequences: Record<Action, { readonly status: string; readonly attempts: readonly string[] }> = {
  cancel: { status: "canceled", attempts: ["work 1 canceled canceled_by_flow_control"] },
  pause: { status: "paused", attempts: ["work 1 canceled workflow_paused"] },
  skip: { status: "completed", attempts: ["work 1 skipped skipped_by_flow_control", "after 1 completed success"] },
  reattempt: { status: "waiting", attempts: ["work 1 completed reattempted", "work 2 scheduled –"] },
  finish: { status: "completed", attempts: ["work 1 completed success"] },
  suspend: { status: "waiting", attempts: ["work 1 completed continued", "work 2 scheduled –"] },
};

const actions = Object.keys(leaveBy) as Action[];

async function expectConsequence(action: Action, body: (w: Workflow, leave: () => never) => unknown): Promise<void> {
  const Leaving = working((w) => body(w, () => leaveBy[action](w)));
  const t = await start(Leaving);
  const run = await t.pawl.start(Leaving);
  await t.settle();
  expect({ status: await run.status(), attempts: await attemptsOf(run) }).toEqual(consequences[action]);
  await expectSound(t);
}

describe("from inside", () => {
  describe.each(actions)("%s()", (action) => {
    test("leaves the step at once", async () => {
      let behind = 0;
      await expectConsequence(action, (_w, leave) => {
        leave();
        behind += 1;
      });
      expect(behind).toBe(0);
    });

    test("leaves the step at once after it has awaited something", async () => {
      await expectConsequence(action, async (_w, leave) => {
        await new Promise((resolve) => setImmediate(resolve));
        leave();
      });
    });

    test("takes effect although a catch block swallows it and the step returns", async () => {
      await expectConsequence(action, async (_w, leave) => {
        try {
          await new Promise((resolve) => setImmediate(resolve));
          return leave();
        } catch {
          return "as if nothing had happened";
        }
      });
    });

    test("takes effect although a catch block throws another error instead", async () => {
      await expectConsequence(action, async (_w, leave) => {
        try {
          leave();
        } catch (cause) {
          throw new Error("could not do it", { cause });
        }
      });
    });

    test("takes effect although a finally block returns", async () => {
      await expectConsequence(action, async (_w, leave) => {
        try {
          leave();
        } finally {
          // biome-ignore lint/correctness/noUnsafeFinally: the unsafe return is what this test is about
          return "nevertheless";
        }
      });
    });

    test("takes effect although Promise.allSettled swallows it", async () => {
      await expectConsequence(action, (_w, leave) => Promise.allSettled([(async () => leave())()]));
    });

    test("takes effect although aroundStepExecution swallows it", async () => {
      class Guarded extends Workflow {
        static {
          this.step("work", (w) => leaveBy[action](w));
          this.step("after", () => {});
        }
        override async aroundStepExecution(_execution: unknown, next: () => Promise<void>) {
          await next().catch(() => {});
        }
      }
      const t = await start(Guarded);
      const run = await t.pawl.start(Guarded);
      await t.settle();
      expect({ status: await run.status(), attempts: await attemptsOf(run) }).toEqual(consequences[action]);
    });

    test.each(["beforeStepExecution", "aroundStepExecution", "afterStepExecution", "skipIf", "cancelIf"] as const)(
      "has the same effect in %s",
      async (place) => {
        let bodies = 0;
        class Hooked extends Workflow {
          static {
            this.cancelIf((w) => place === "cancelIf" && leaveBy[action](w));
            this.step("work", { skipIf: (w) => place === "skipIf" && leaveBy[action](w) }, () => void (bodies += 1));
            this.step("after", () => {});
          }
          override beforeStepExecution({ step }: { step: string }) {
            if (place === "beforeStepExecution" && step === "work") leaveBy[action](this);
          }
          override aroundStepExecution({ step }: { step: string }, next: () => Promise<void>) {
            if (place === "aroundStepExecution" && step === "work") leaveBy[action](this);
            return next();
          }
          override afterStepExecution({ step }: { step: string }) {
            if (place === "afterStepExecution" && step === "work") leaveBy[action](this);
          }
        }
        const t = await start(Hooked);
        const run = await t.pawl.start(Hooked);
        await t.settle();
        const { status, attempts } = consequences[action];
        // cancelIf is evaluated before every step, so an action that skips does so each time.
        const skipped = attempts.map((line) =>
          place === "cancelIf" && line.startsWith("after") ? "after 1 skipped skipped_by_flow_control" : line,
        );
        expect({ status: await run.status(), attempts: await attemptsOf(run) }).toEqual({ status, attempts: skipped });
        expect(bodies).toBe(place === "afterStepExecution" ? 1 : 0);
      },
    );
  });

  test("the flow control that leaves the body takes effect, not one that was swallowed before", async () => {
    await expectConsequence("cancel", (w, leave) => {
      try {
        w.skip();
      } catch {
        leave();
      }
    });
  });

  test("flow control that is swallowed in a body that then waits takes effect when the body returns", async () => {
    const Patient = working(async (w) => {
      try {
        w.skip();
      } catch {
        await w.sleep("nap", "1 day");
      }
    });
    const t = await start(Patient);
    const run = await t.pawl.start(Patient);
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual(consequences.skip.attempts);
  });

  test("flow control in a step of the body affects that step, not the step around it", async () => {
    const got: unknown[] = [];
    const Nested = working(async (w) => {
      got.push(await w.step("inner", () => w.skip()));
      got.push(
        await w.step("later", async () => {
          await new Promise((resolve) => setImmediate(resolve));
          w.skip();
        }),
      );
    });
    const t = await start(Nested);
    const run = await t.pawl.start(Nested);
    await t.settle();
    expect(got).toEqual([undefined, undefined]);
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
    expect((await run.executions()).filter(({ step }) => step.includes("/"))).toMatchObject([
      { step: "work/inner", state: "skipped" },
      { step: "work/later", state: "skipped" },
    ]);
  });

  test("cancel() stores its reason, and canceledAt is the time of the call", async () => {
    const Canceling = working((w) => w.cancel("fraud"));
    const t = await start(Canceling);
    const run = await t.pawl.start(Canceling);
    await t.settle();
    expect(await run.get()).toMatchObject({
      status: "canceled",
      canceledAt: t.clock.now,
      finishedAt: t.clock.now,
      error: { message: expect.stringContaining("fraud") },
    });
    expect(await errorOf(run.result())).toMatchObject({ code: "RUN_CANCELED", reason: "fraud" });
  });

  test("pause() stores its reason; pausedAt, currentStep and currentExecution say where the run is", async () => {
    let ready = false;
    const Pausing = working((w) => (ready ? "went on" : w.pause("not ready")));
    const t = await start(Pausing);
    const run = await t.pawl.start(Pausing);
    await t.settle();
    const paused = await run.get();
    expect(paused).toMatchObject({
      status: "paused",
      pauseReason: "not ready",
      pausedAt: t.clock.now,
      currentStep: "work",
    });
    ready = true;
    await run.resume();
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "completed", pausedAt: null, pauseReason: null });
    expect(await attemptsOf(run)).toEqual([
      "work 1 canceled workflow_paused",
      "work 2 completed success",
      "after 1 completed success",
    ]);
    expect((await run.executions())[1]?.id).toBe(paused.currentExecution);
  });

  test("finish() completes the run with its output and does not run the rest of the chain", async () => {
    class Finishing extends Workflow<unknown, void, { total: number }> {
      static {
        this.step("count", (w) => w.finish({ total: 3 }));
        this.step("never", () => {});
      }
    }
    const t = await start(Finishing);
    const run = await t.pawl.start(Finishing);
    await t.settle();
    expect(await run.result()).toEqual({ total: 3 });
    expect(await attemptsOf(run)).toEqual(["count 1 completed success"]);
  });

  test("reattempt() runs the step again after its wait, without a limit, and keeps the recorded calls", async () => {
    const at: number[] = [];
    let recordings = 0;
    const Polling = working(async (w) => {
      await w.step("once", () => void (recordings += 1));
      at.push(t.clock.read());
      if (at.length < 150) w.reattempt({ wait: "1m" });
    });
    const t = await start(Polling);
    const run = await t.pawl.start(Polling);
    await t.speedrun(run);
    expect(at.slice(1).map((instant, index) => instant - (at[index] as number))).toEqual(Array(149).fill(60_000));
    expect(recordings).toBe(1);
    expect(await run.status()).toBe("completed");
  });

  test("reattempt({ rewind: true }) discards the recorded calls of the step, and only those", async () => {
    const recordings: string[] = [];
    class Rewinding extends Workflow {
      static {
        this.step("before", (w) => w.step("part", () => void recordings.push("before")));
        this.step("work", async (w) => {
          await w.step("part", () => void recordings.push(`work ${w.attempt}`));
          if (w.attempt < 3) w.reattempt({ rewind: true });
        });
      }
    }
    const t = await start(Rewinding);
    const run = await t.pawl.start(Rewinding);
    await t.speedrun(run);
    expect(recordings).toEqual(["before", "work 1", "work 2", "work 3"]);
    expect(await attemptsOf(run)).toEqual([
      "before 1 completed success",
      "work 1 completed reattempted",
      "work 2 completed reattempted",
      "work 3 completed success",
    ]);
    await expectSound(t);
  });
});

/** A run of two steps, "work" and "after", brought to the state in which a command reaches it. */
interface Situation {
  readonly t: TestPawl;
  readonly run: AnyRun;
  /** Lets the step end if one is being executed. */
  readonly release: () => void;
}

const terminal = ["completed", "failed", "canceled"] as const;
const running = [
  "pending",
  "scheduled",
  "waiting for its next attempt",
  "executing",
  "asleep inside a body",
  "waiting for a signal inside a body",
] as const;
const paused = [
  "paused by an exception",
  "paused by its code",
  "paused while scheduled",
  "paused while pending",
  "paused while it waits inside a body",
] as const;
type SituationName = (typeof terminal | typeof running | typeof paused)[number];

async function begin(workflow: ReturnType<typeof working>, starts = start): Promise<Situation> {
  const t = await starts(workflow);
  const run = await t.pawl.start(workflow);
  await t.settle();
  return { t, run, release: () => {} };
}

const situations: Record<SituationName, () => Promise<Situation>> = {
  pending: async () => {
    const Plain = working(() => {});
    const t = await start(Plain);
    return { t, run: await t.pawl.start(Plain, undefined, { delay: "1h" }), release: () => {} };
  },
  scheduled: () => begin(working(() => {}, { wait: "1 day" })),
  "waiting for its next attempt": () =>
    begin(working((w) => (w.attempt === 1 ? w.reattempt({ wait: "1 day" }) : null))),
  executing: async () => {
    const started = gate();
    const finish = gate();
    const Busy = working(async () => {
      started.open();
      await finish.opened;
    });
    const t = await start(Busy);
    const run = await t.pawl.start(Busy);
    void t.settle();
    await started.opened;
    // The start of a long step is recorded with a delay. Without this wait the log might change while the test compares
    // it.
    await recorded(run, "step.started work");
    return { t, run, release: () => finish.open() };
  },
  "asleep inside a body": () =>
    begin(
      working((w) => w.sleep("nap", "1 day")),
      startInMemory,
    ),
  "waiting for a signal inside a body": () =>
    begin(
      working((w) => w.waitForSignal("go")),
      startInMemory,
    ),
  "paused by an exception": () => {
    let ready = false;
    return begin(
      working(() => {
        if (ready) return;
        ready = true;
        throw new Error("boom");
      }),
    );
  },
  "paused by its code": () => begin(working((w) => (w.attempt === 1 ? w.pause() : null))),
  "paused while scheduled": async () => {
    const situation = await situations.scheduled();
    await situation.run.pause();
    return situation;
  },
  "paused while pending": async () => {
    const situation = await situations.pending();
    await situation.run.pause();
    return situation;
  },
  "paused while it waits inside a body": async () => {
    const situation = await situations["waiting for a signal inside a body"]();
    await situation.run.pause();
    return situation;
  },
  completed: () => begin(working(() => {})),
  failed: () =>
    begin(
      working(
        () => {
          throw new Error("boom");
        },
        { onException: "fail" },
      ),
    ),
  canceled: () => begin(working((w) => w.cancel())),
};

const commands = {
  pause: (run: AnyRun) => run.pause(),
  resume: (run: AnyRun) => run.resume(),
  skip: (run: AnyRun) => run.skip(),
  cancel: (run: AnyRun) => run.cancel("not needed"),
  signal: (run: AnyRun) => run.signal("go", "there"),
  "resumeAt after": (run: AnyRun) => run.resumeAt("after"),
  "resume with an output": (run: AnyRun) => run.resume({ output: 1 }),
} as const;

type CommandName = keyof typeof commands;

/** The states in which each command is invalid. */
const invalidStates: Record<CommandName, readonly SituationName[]> = {
  pause: [...paused, ...terminal],
  resume: [...running, ...terminal],
  "resume with an output": [...running, "paused while pending", ...terminal],
  "resumeAt after": [...running, "paused while pending", ...terminal],
  skip: ["pending", "executing", "paused while pending", ...terminal],
  cancel: ["completed", "failed"],
  signal: terminal,
};

describe("a command from outside that is invalid in the run's state is refused and changes nothing", () => {
  describe.each(Object.keys(invalidStates) as CommandName[])("%s", (command) => {
    test.each(invalidStates[command])("of a run that is %s", async (name) => {
      const { t, run, release } = await situations[name]();
      await refused(run, () => commands[command](run));
      release();
      await t.settle();
      await expectSound(t);
    });
  });

  test("cancel of a canceled run is a no-op", async () => {
    const { run } = await situations.canceled();
    await passedOver(run, () => run.cancel("again"));
  });
});

describe("pause from outside", () => {
  test.each([
    "pending",
    "scheduled",
    "waiting for its next attempt",
    "asleep inside a body",
    "waiting for a signal inside a body",
  ] as const)(
    "of a run that is %s takes effect at once, nothing happens while it is paused, and after resume() it continues as before",
    async (name) => {
      const { t, run } = await situations[name]();
      const before = await attemptsOf(run);
      await run.pause("a moment");
      expect(await run.get()).toMatchObject({ status: "paused", pauseReason: "a moment", pausedAt: t.clock.now });
      const logBefore = await logOf(run);
      await t.advance("10 days");
      // The log of a run that had not started says that it became due meanwhile.
      expect((await logOf(run)).filter((line) => line !== "run.became_due")).toEqual(logBefore);
      expect(await attemptsOf(run)).toEqual(before);
      await run.resume();
      expect(await run.get()).toMatchObject({ pausedAt: null, pauseReason: null });
      if (name === "waiting for a signal inside a body") await run.signal("go");
      await t.speedrun(run);
      expect(await run.status()).toBe("completed");
      await expectSound(t);
    },
  );

  test("of a run that is executing takes effect at the next boundary; when it is resumed, it continues after the step", async () => {
    const { t, run, release } = await situations.executing();
    await run.pause();
    expect(await run.status()).toBe("running");
    await recorded(run, "run.paused");
    release();
    await t.settle();
    expect(await run.status()).toBe("paused");
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 scheduled –"]);
    await run.resume();
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
    await expectSound(t);
  });

  test("followed by resume while one step is executing does not affect the step", async () => {
    const { t, run, release } = await situations.executing();
    await run.pause();
    await run.resume();
    release();
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
    await expectSound(t);
  });
});

describe("resume from outside", () => {
  test("of a run that an exception paused runs the failed step again, and not those before it", async () => {
    const executed: string[] = [];
    let broken = true;
    class Failing extends Workflow {
      static {
        this.step("first", () => void executed.push("first"));
        this.step("second", () => {
          executed.push("second");
          if (broken) throw new Error("boom");
        });
      }
    }
    const t = await start(Failing);
    const run = await t.pawl.start(Failing);
    await t.settle();
    broken = false;
    await run.resume();
    expect(await attemptsOf(run)).toEqual([
      "first 1 completed success",
      "second 1 failed paused_by_exception",
      "second 2 scheduled –",
    ]);
    await t.settle();
    expect(executed).toEqual(["first", "second", "second"]);
    expect(await run.status()).toBe("completed");
  });

  test("with an output completes the step at which the run is paused", async () => {
    const { t, run } = await situations["paused by an exception"]();
    await run.resume({ output: "by hand" });
    await t.settle();
    expect(await attemptsOf(run)).toEqual([
      "work 1 failed paused_by_exception",
      "work 2 completed success",
      "after 1 completed success",
    ]);
  });
});

describe("skip from outside", () => {
  test.each([
    ["scheduled", ["work 1 skipped skipped_by_flow_control"]],
    ["waiting for its next attempt", ["work 1 completed reattempted", "work 2 skipped skipped_by_flow_control"]],
    ["asleep inside a body", ["work 1 skipped skipped_by_flow_control"]],
    ["waiting for a signal inside a body", ["work 1 skipped skipped_by_flow_control"]],
    ["paused by an exception", ["work 1 failed paused_by_exception", "work 2 skipped skipped_by_flow_control"]],
    ["paused by its code", ["work 1 canceled workflow_paused", "work 2 skipped skipped_by_flow_control"]],
    ["paused while scheduled", ["work 1 skipped skipped_by_flow_control"]],
    ["paused while it waits inside a body", ["work 1 skipped skipped_by_flow_control"]],
  ] as const)("of a run that is %s skips its step and continues", async (name, attempts) => {
    const { t, run } = await situations[name]();
    await run.skip();
    expect(await attemptsOf(run)).toEqual([...attempts, "after 1 scheduled –"]);
    await t.settle();
    expect(await attemptsOf(run)).toEqual([...attempts, "after 1 completed success"]);
    expect(await run.status()).toBe("completed");
    await expectSound(t);
  });
});

describe("cancel from outside", () => {
  test.each([
    ["pending", []],
    ["scheduled", ["work 1 canceled canceled_by_flow_control"]],
    ["asleep inside a body", ["work 1 canceled canceled_by_flow_control"]],
    ["waiting for a signal inside a body", ["work 1 canceled canceled_by_flow_control"]],
    ["paused by an exception", ["work 1 failed paused_by_exception"]],
    ["paused by its code", ["work 1 canceled workflow_paused"]],
    ["paused while scheduled", ["work 1 canceled canceled_by_flow_control"]],
    ["paused while pending", []],
    ["paused while it waits inside a body", ["work 1 canceled canceled_by_flow_control"]],
  ] as const)("of a run that is %s takes effect at once", async (name, attempts) => {
    const { t, run } = await situations[name]();
    await run.cancel("not needed");
    expect(await run.get()).toMatchObject({
      status: "canceled",
      canceledAt: t.clock.now,
      pausedAt: null,
      error: { message: expect.stringContaining("not needed") },
    });
    const canceled = await attemptsOf(run);
    await t.advance("10 days");
    expect(await attemptsOf(run)).toEqual(canceled);
    expect(canceled).toEqual(attempts);
    await expectSound(t);
  });

  test("of a run that is waiting for its next attempt takes effect at once", async () => {
    const { t, run } = await situations["waiting for its next attempt"]();
    await run.cancel();
    await t.advance("10 days");
    expect(await run.status()).toBe("canceled");
    const attempts = await attemptsOf(run);
    expect(attempts[0]).toBe("work 1 completed reattempted");
    expect(attempts.filter((line) => line.endsWith("–"))).toEqual([]);
    await expectSound(t);
  });

  test("of a run that is executing aborts the step's signal, records the end of the step, and cancels the run", async () => {
    const started = gate();
    const Busy = working(async (w) => {
      started.open();
      await new Promise((resolve) => w.abortSignal.addEventListener("abort", resolve));
    });
    const t = await start(Busy);
    const run = await t.pawl.start(Busy);
    void t.settle();
    await started.opened;
    await run.cancel("not needed");
    await t.settle();
    expect(await run.status()).toBe("canceled");
    expect(await attemptsOf(run)).toEqual(["work 1 completed success"]);
    await expectSound(t);
  });
});

describe("signal from outside", () => {
  /** The second step waits for the signal that the test sends while the first step is in a given state. */
  const listening = (work: (w: Workflow) => unknown, wait = 0, received: unknown[] = []) =>
    class Listening extends Workflow {
      static received = received;
      static {
        this.step("work", { wait }, work);
        this.step("after", async (w) => void received.push(await w.waitForSignal("go", { timeout: "365 days" })));
      }
    };

  test.each([
    ["pending", listening(() => {}), { delay: "1h" }],
    ["scheduled", listening(() => {}, 86_400_000), {}],
    ["waiting for its next attempt", listening((w) => (w.attempt === 1 ? w.reattempt({ wait: "1 day" }) : null)), {}],
    ["asleep inside a body", listening((w) => w.sleep("nap", "1 day")), {}],
    ["paused by its code", listening((w) => (w.attempt === 1 ? w.pause() : null)), {}],
  ] as const)("to a run that is %s is kept until a step waits for it", async (name, workflow, options) => {
    const t = await start(workflow);
    const run = await t.pawl.start(workflow, undefined, options);
    if (name !== "pending") await t.settle();
    const status = await run.status();
    await run.signal("go", name);
    expect(await run.status()).toBe(status);
    if (status === "paused") await run.resume();
    await t.speedrun(run);
    expect(workflow.received).toEqual([name]);
    await expectSound(t);
  });

  test("to a run that is executing is kept until a step waits for it", async () => {
    const started = gate();
    const finish = gate();
    const Busy = listening(async () => {
      started.open();
      await finish.opened;
    });
    const t = await start(Busy);
    const run = await t.pawl.start(Busy);
    void t.settle();
    await started.opened;
    await run.signal("go", "while it ran");
    finish.open();
    await t.settle();
    expect(Busy.received).toEqual(["while it ran"]);
    expect(await run.status()).toBe("completed");
  });

  test("to a run that waits for it inside a body continues the same attempt", async () => {
    const { t, run } = await situations["waiting for a signal inside a body"]();
    await run.signal("go");
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 completed success", "after 1 completed success"]);
  });
});

describe("commands to a parked run without any worker", () => {
  forMemoryAnd("postgres", (kind) => {
    const database = databaseFor(kind);

    /** Starts a run that is parked by a worker, and stops that worker. */
    async function startParked(name: string, work: (w: Workflow) => unknown, wait = 0) {
      const Parked = working(work, { wait }, { name });
      const w = await database.world();
      const run = await w.pawl.start(Parked);
      const worker = await w.worker([Parked]);
      await worker.settle();
      await worker.worker.stop();
      const runToEnd = async () => (await w.worker([Parked])).settle();
      return { w, run, runToEnd };
    }

    test("pause, resume and skip of a scheduled step take effect at once", async () => {
      const { w, run, runToEnd } = await startParked("scheduled", () => {}, 86_400_000);
      const [scheduled] = await run.executions();
      await run.pause("a moment");
      expect(await run.get()).toMatchObject({ status: "paused", pauseReason: "a moment", pausedAt: w.clock.now });
      await refused(run, () => run.pause());
      await run.resume();
      expect(await run.get()).toMatchObject({ status: "waiting", pausedAt: null, currentStep: "work" });
      expect(await run.executions()).toEqual([scheduled]);
      await refused(run, () => run.resume());
      await refused(run, () => run.resumeAt("after"));
      await run.skip();
      expect(await attemptsOf(run)).toEqual(["work 1 skipped skipped_by_flow_control", "after 1 scheduled –"]);
      await runToEnd();
      expect(await run.status()).toBe("completed");
      await expectSound(w);
    });

    test("resumeAt of a run that an exception paused takes effect at once", async () => {
      const { w, run, runToEnd } = await startParked("failed", () => {
        throw new Error("boom");
      });
      expect(await run.get()).toMatchObject({ status: "paused", currentStep: "work" });
      await run.resumeAt("after");
      expect(await run.status()).toBe("waiting");
      await runToEnd();
      expect(await attemptsOf(run)).toEqual(["work 1 failed paused_by_exception", "after 1 completed success"]);
      await expectSound(w);
    });

    test("signal and cancel of a body that waits take effect at once", async () => {
      const { w, run } = await startParked("waiting", (one) => one.waitForAll(["a", "b"]));
      await run.signal("a", 1);
      expect((await logOf(run)).at(-1)).toBe("signal.received");
      await run.cancel("not needed");
      expect(await run.get()).toMatchObject({ status: "canceled", canceledAt: w.clock.now });
      await refused(run, () => run.signal("b"));
      await expectSound(w);
    });
  });
});

describe("resumeAt from outside", () => {
  function chain() {
    const executed: string[] = [];
    class Chain extends Workflow {
      static {
        for (const name of ["a", "b", "c"])
          this.step(name, (w) => {
            executed.push(name);
            if (name === "b" && executed.length < 3) w.pause("where to?");
          });
      }
    }
    return { Chain, executed };
  }

  test.each([
    ["a", ["a", "b", "a", "b", "c"]],
    ["b", ["a", "b", "b", "c"]],
    ["c", ["a", "b", "c"]],
  ])("of a paused run continues at %s at once, whichever steps have completed", async (step, order) => {
    const { Chain, executed } = chain();
    const t = await start(Chain);
    const run = await t.pawl.start(Chain);
    await t.settle();
    await run.resumeAt(step);
    await t.settle();
    expect(executed).toEqual(order);
    expect(await run.status()).toBe("completed");
    await expectSound(t);
  });

  test("ignores the wait that the step declares", async () => {
    const { t, run } = await situations["paused while scheduled"]();
    await run.resumeAt("work");
    await t.settle();
    expect(await run.status()).toBe("completed");
  });

  test.each([
    "paused by an exception",
    "paused by its code",
    "paused while scheduled",
    "paused while it waits inside a body",
  ] as const)("of a run that is %s abandons the step it was at", async (name) => {
    const { t, run } = await situations[name]();
    await run.resumeAt("after");
    await t.settle();
    expect((await attemptsOf(run)).at(-1)).toBe("after 1 completed success");
    expect((await attemptsOf(run)).filter((line) => line.endsWith("–"))).toEqual([]);
    expect(await run.status()).toBe("completed");
    await expectSound(t);
  });

  test("to a step that does not exist pauses the run again with a StepNotDefinedError; resumeAt to an existing step fixes it", async () => {
    const { t, run } = await situations["paused by its code"]();
    await run.resumeAt("nowhere");
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining('"nowhere"') });
    expect((await run.history()).at(-1)).toMatchObject({
      type: "run.paused",
      data: { error: { name: "StepNotDefinedError", code: "STEP_NOT_DEFINED" } },
    });
    await run.resumeAt("after");
    await t.settle();
    expect(await run.status()).toBe("completed");
  });
});
