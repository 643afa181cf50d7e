/** Exceptions in a step: every way to declare a policy, which one takes precedence, and what is stored of the error. */
import {
  type ClassOptions,
  connect,
  type ErrorContext,
  type ExceptionAction,
  type ExceptionPolicy,
  GraphError,
  PauseError,
  PermanentError,
  type StepDeclarationOptions,
  TimeoutError,
  TransientError,
  Workflow,
} from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { working } from "../support/class-workflows.js";
import { forMemoryAnd } from "../support/effort.js";
import { attemptsOf, expectSound } from "../support/run-checks.js";
import { databaseFor, silent, start } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";

class PaymentError extends Error {}
class CardError extends PaymentError {}
class ExpiredCardError extends CardError {}

const actions = ["pause", "cancel", "reattempt", "skip", "fail"] as const;

const outcomes: Record<ExceptionAction, string> = {
  pause: "paused_by_exception",
  cancel: "canceled_by_exception",
  reattempt: "reattempted_by_exception",
  skip: "skipped_by_exception",
  fail: "failed_by_exception",
};

const actionOf = (line: string | undefined) =>
  actions.find((action) => line === `work 1 failed ${outcomes[action]}`) ?? line;

interface Policies {
  readonly step?: StepDeclarationOptions<Workflow>;
  readonly classOptions?: ClassOptions<Workflow>;
  readonly parentOptions?: ClassOptions<Workflow>;
}

/** Returns what happens to a step that throws this error, given the options of step, class and parent. */
async function reactionTo(error: unknown, { step = {}, classOptions = {}, parentOptions = {} }: Policies) {
  class Parent extends Workflow {
    static {
      this.options(parentOptions);
      this.step("work", step, () => {
        throw error;
      });
      this.step("after", () => {});
    }
  }
  class Child extends Parent {
    static {
      this.options(classOptions);
    }
  }
  const t = await start(Child);
  const run = await t.pawl.start(Child);
  await t.settle();
  return actionOf((await attemptsOf(run))[0]);
}

describe("every way to declare an exception policy", () => {
  test("without a policy the run is paused", async () => {
    expect(await reactionTo(new Error("boom"), {})).toBe("pause");
  });

  test.each(actions)("the step declares %s", async (action) => {
    expect(await reactionTo(new Error("boom"), { step: { onException: action } })).toBe(action);
  });

  test.each(actions)("the class declares %s, for all its steps", async (action) => {
    expect(await reactionTo(new Error("boom"), { classOptions: { onException: action } })).toBe(action);
  });

  test.each(actions)("a parent of the class declares %s", async (action) => {
    expect(await reactionTo(new Error("boom"), { parentOptions: { onException: action } })).toBe(action);
  });

  const ways: readonly [string, ExceptionPolicy][] = [
    ["a rule for all errors", { action: "skip" }],
    ["a rule for an error class", { on: CardError, action: "skip" }],
    ["a rule for a parent of the error's class", { on: PaymentError, action: "skip" }],
    ["a rule for several error classes", { on: [RangeError, CardError], action: "skip" }],
    ["a rule with a predicate", { on: (error) => error.message === "boom", action: "skip" }],
    ["a function that returns an action", (error) => (error instanceof CardError ? "skip" : "fail")],
    ["a function that returns a rule", () => ({ action: "skip" })],
    ["a list of policies", [{ on: RangeError, action: "fail" }, () => undefined, "skip"]],
  ];
  test.each(ways)("%s", async (_name, onException) => {
    expect(await reactionTo(new CardError("boom"), { step: { onException } })).toBe("skip");
    expect(await reactionTo(new CardError("boom"), { classOptions: { onException } })).toBe("skip");
  });

  const misses: readonly [string, ExceptionPolicy][] = [
    ["a rule for another error class", { on: RangeError, action: "skip" }],
    ["a rule for a subclass of the error's class", { on: ExpiredCardError, action: "skip" }],
    ["a predicate that returns false", { on: () => false, action: "skip" }],
    ["a function that returns undefined", () => undefined],
    ["an empty list", []],
  ];
  test.each(misses)("%s falls back to the default", async (_name, onException) => {
    expect(await reactionTo(new CardError("boom"), { step: { onException } })).toBe("pause");
  });

  test("a thrown value that is not an Error is handled too", async () => {
    const onException: ExceptionPolicy = [
      { on: Error, action: "fail" },
      { on: (thrown) => thrown === "boom", action: "skip" },
    ];
    expect(await reactionTo("boom", { step: { onException } })).toBe("skip");
    expect(await reactionTo(null, { step: { onException } })).toBe("pause");
  });

  test("a function receives the number of consecutive reattempts", async () => {
    const received: number[] = [];
    const Counting = working(
      () => {
        throw new Error("boom");
      },
      {
        onException: (_error, { reattempts }) => {
          received.push(reattempts);
          return reattempts < 3 ? "reattempt" : "skip";
        },
      },
    );
    const t = await start(Counting);
    const run = await t.pawl.start(Counting);
    await t.speedrun(run);
    expect(received).toEqual([0, 1, 2, 3]);
    expect((await attemptsOf(run)).at(-2)).toBe("work 4 failed skipped_by_exception");
  });
});

describe("the most specific policy takes precedence", () => {
  const cases: readonly [string, unknown, Policies, ExceptionAction | "work 1 canceled workflow_paused"][] = [
    [
      "the step's general policy over the class's",
      new Error("boom"),
      { step: { onException: "skip" }, classOptions: { onException: "fail" } },
      "skip",
    ],
    [
      "the class's general policy over its parent's",
      new Error("boom"),
      { classOptions: { onException: "skip" }, parentOptions: { onException: "fail" } },
      "skip",
    ],
    [
      "a parent's general policy over the default",
      new Error("boom"),
      { classOptions: { queue: "mail" }, parentOptions: { onException: "skip" } },
      "skip",
    ],
    [
      "the class's rule for this error over the step's general policy",
      new CardError("boom"),
      { step: { onException: "fail" }, classOptions: { onException: { on: CardError, action: "skip" } } },
      "skip",
    ],
    [
      "a parent's rule for this error over the step's general policy",
      new CardError("boom"),
      { step: { onException: "fail" }, parentOptions: { onException: { on: CardError, action: "skip" } } },
      "skip",
    ],
    [
      "a rule of the step over a more specific one of the class",
      new CardError("boom"),
      {
        step: { onException: { on: PaymentError, action: "skip" } },
        classOptions: { onException: { on: CardError, action: "fail" } },
      },
      "skip",
    ],
    [
      "a rule of the class over a more specific one of its parent",
      new CardError("boom"),
      {
        classOptions: { onException: { on: PaymentError, action: "skip" } },
        parentOptions: { onException: { on: CardError, action: "fail" } },
      },
      "skip",
    ],
    [
      "the most specific error class, whatever the order",
      new ExpiredCardError("boom"),
      {
        step: {
          onException: [
            { on: Error, action: "pause" },
            { on: PaymentError, action: "cancel" },
            { on: CardError, action: "skip" },
            { on: [RangeError, PaymentError], action: "fail" },
          ],
        },
      },
      "skip",
    ],
    [
      "a predicate over the error's own class",
      new CardError("boom"),
      {
        step: {
          onException: [
            { on: CardError, action: "fail" },
            { on: () => true, action: "skip" },
          ],
        },
      },
      "skip",
    ],
    [
      "the first of two equally specific rules",
      new CardError("boom"),
      {
        step: {
          onException: [
            { on: CardError, action: "skip" },
            { on: CardError, action: "fail" },
          ],
        },
      },
      "skip",
    ],
    [
      "a rule with an error class over a function in the same list",
      new CardError("boom"),
      { step: { onException: [() => "fail", { on: CardError, action: "skip" }] } },
      "skip",
    ],
    [
      "the step's function over the class's general policy",
      new Error("boom"),
      { step: { onException: () => "skip" }, classOptions: { onException: "fail" } },
      "skip",
    ],
    [
      "the class's general policy when the step's function returns undefined",
      new Error("boom"),
      { step: { onException: () => undefined }, classOptions: { onException: "skip" } },
      "skip",
    ],
    [
      "a PauseError's default over a general policy",
      new PauseError("ask"),
      { step: { onException: "skip" } },
      "work 1 canceled workflow_paused",
    ],
    [
      "a PermanentError's default over a general policy",
      new PermanentError("no"),
      { step: { onException: "skip" } },
      "fail",
    ],
    [
      "a TransientError's default over a general policy",
      new TransientError("later"),
      { step: { onException: "skip" } },
      "reattempt",
    ],
    [
      "a rule for PauseError over its default",
      new PauseError("ask"),
      { step: { onException: { on: PauseError, action: "skip" } } },
      "skip",
    ],
    [
      "a rule for PermanentError over its default",
      new PermanentError("no"),
      { classOptions: { onException: { on: PermanentError, action: "skip" } } },
      "skip",
    ],
    [
      "a rule for TransientError over its default",
      new TransientError("later"),
      { parentOptions: { onException: { on: (error) => error instanceof TransientError, action: "skip" } } },
      "skip",
    ],
  ];
  test.each(cases)("%s", async (_name, error, policies, expected) => {
    expect(await reactionTo(error, policies)).toBe(expected);
  });

  test.each([
    [{ onException: "reattempt" } as const, "pause"],
    [{ onException: "reattempt", terminalAction: "cancel" } as const, "cancel"],
    [{ onException: "skip" } as const, "skip"],
  ])("a GraphError is never retried: with %o the outcome is %s", async (step, expected) => {
    expect(await reactionTo(new GraphError("no such node"), { step })).toBe(expected);
  });

  test("a rule for TimeoutError catches the step's time limit", async () => {
    const Slow = working(() => new Promise(() => {}), {
      timeout: 5,
      onException: ["fail", { on: TimeoutError, action: "skip" }],
    });
    const t = await start(Slow);
    const run = await t.pawl.start(Slow);
    await t.settle();
    expect(await attemptsOf(run)).toEqual(["work 1 failed timed_out", "after 1 completed success"]);
  });
});

/** A class whose step runs `body`, which throws by default. */
function failing(
  stepOptions: StepDeclarationOptions<Workflow>,
  classOptions: ClassOptions<Workflow> = {},
  body: (w: Workflow) => unknown = () => {
    throw new Error("boom");
  },
) {
  return working(body, stepOptions, classOptions);
}

/** Returns the number of attempts until none is due any more, and how the last one ended. */
async function runUntilExhausted(workflow: ReturnType<typeof working>) {
  const t = await start(workflow);
  const run = await t.pawl.start(workflow);
  await t.advance("400 days");
  const attempts = (await attemptsOf(run)).filter((line) => line.startsWith("work"));
  return { t, run, count: attempts.length, last: attempts.at(-1)?.split(" ").at(-1), status: await run.status() };
}

describe("maxReattempts", () => {
  test("5 allows five reattempts after the first execution, then the run is paused", async () => {
    const { count, last, status, t } = await runUntilExhausted(failing({ onException: "reattempt", maxReattempts: 5 }));
    expect({ count, last, status }).toEqual({ count: 6, last: "paused_by_exception", status: "paused" });
    await expectSound(t);
  });

  test("is 100 by default", async () => {
    const { count, last, status } = await runUntilExhausted(failing({ onException: "reattempt" }));
    expect({ count, last, status }).toEqual({ count: 101, last: "paused_by_exception", status: "paused" });
  });

  test("0 allows no reattempts", async () => {
    expect(await runUntilExhausted(failing({ onException: "reattempt", maxReattempts: 0 }))).toMatchObject({
      count: 1,
    });
  });

  test.each([
    ["of the class applies to its steps", {}, { onException: "reattempt", maxReattempts: 2 }, 3],
    ["of the step overrides the class's", { maxReattempts: 1 }, { onException: "reattempt", maxReattempts: 4 }, 2],
    [
      "of the rule overrides the step's",
      { onException: { on: Error, action: "reattempt", maxReattempts: 3 }, maxReattempts: 1 },
      {},
      4,
    ],
    [
      "of the class applies to a reattempt that the step requests",
      { onException: "reattempt" },
      { maxReattempts: 2 },
      3,
    ],
  ] as const)("%s", async (_name, stepOptions, classOptions, count) => {
    expect(await runUntilExhausted(failing(stepOptions, classOptions))).toMatchObject({ count });
  });

  test.each([
    ["pause", "paused"],
    ["cancel", "canceled"],
    ["skip", "completed"],
    ["fail", "failed"],
  ] as const)("when exhausted with terminalAction %s, the run is %s", async (terminalAction, status) => {
    const used = await runUntilExhausted(failing({ onException: "reattempt", maxReattempts: 2, terminalAction }));
    expect(used).toMatchObject({ count: 3, last: outcomes[terminalAction], status });
  });

  test.each([
    ["of the class applies to its steps", {}, { terminalAction: "skip" }],
    ["of the step overrides the class's", { terminalAction: "skip" }, { terminalAction: "fail" }],
    [
      "of the rule overrides the step's",
      { onException: { action: "reattempt", terminalAction: "skip" }, terminalAction: "fail" },
      {},
    ],
  ] as const)("terminalAction %s", async (_name, step, classOptions) => {
    const used = await runUntilExhausted(
      failing({ onException: "reattempt", maxReattempts: 1, ...step }, classOptions),
    );
    expect(used).toMatchObject({ count: 2, last: "skipped_by_exception", status: "completed" });
  });

  test("starts a new count after a manual resume", async () => {
    const { run, t } = await runUntilExhausted(failing({ onException: "reattempt", maxReattempts: 2 }));
    await run.resume();
    await t.advance("1 day");
    expect(await attemptsOf(run)).toEqual([
      "work 1 failed reattempted_by_exception",
      "work 2 failed reattempted_by_exception",
      "work 3 failed paused_by_exception",
      "work 4 failed reattempted_by_exception",
      "work 5 failed reattempted_by_exception",
      "work 6 failed paused_by_exception",
    ]);
  });

  test("starts a new count after the step itself called reattempt()", async () => {
    const { run } = await runUntilExhausted(
      failing({ onException: "reattempt", maxReattempts: 1 }, {}, (w) => {
        if (w.attempt === 2) w.reattempt();
        throw new Error("boom");
      }),
    );
    expect(await attemptsOf(run)).toEqual([
      "work 1 failed reattempted_by_exception",
      "work 2 completed reattempted",
      "work 3 failed reattempted_by_exception",
      "work 4 failed paused_by_exception",
    ]);
  });

  test("does not count a TransientError", async () => {
    const { count, last } = await runUntilExhausted(
      failing({ onException: "reattempt", maxReattempts: 2 }, {}, (w) => {
        if (w.attempt <= 10) throw new TransientError("later");
        throw new Error("boom");
      }),
    );
    expect({ count, last }).toEqual({ count: 13, last: "paused_by_exception" });
  });

  test("counts each step separately", async () => {
    class Two extends Workflow {
      static {
        this.options({ onException: "reattempt", maxReattempts: 2 });
        for (const name of ["first", "second"])
          this.step(name, (w) => {
            if (w.attempt <= 2) throw new Error("boom");
          });
      }
    }
    const t = await start(Two);
    const run = await t.pawl.start(Two);
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
  });

  test("an output that cannot be stored is not retried", async () => {
    const { count, last, status, run } = await runUntilExhausted(
      failing({ onException: "reattempt" }, {}, () => () => {}),
    );
    expect({ count, last, status }).toEqual({ count: 1, last: "paused_by_exception", status: "paused" });
    expect((await run.executions())[0]?.error).toMatchObject({ code: "SERIALIZATION_ERROR" });
  });
});

describe("the wait before a reattempt", () => {
  async function waitsOf(workflow: ReturnType<typeof working>): Promise<number[]> {
    const { run } = await runUntilExhausted(workflow);
    const ends = (await run.executions()).map(({ finishedAt }) => finishedAt?.getTime() as number);
    return ends.slice(1).map((at, index) => at - (ends[index] as number));
  }

  test("is one second by default and doubles, with jitter", async () => {
    const waits = await waitsOf(failing({ onException: "reattempt", maxReattempts: 4 }));
    expect(waits).toHaveLength(4);
    waits.forEach((ms, index) => {
      expect(ms).toBeGreaterThanOrEqual(500 * 2 ** index);
      expect(ms).toBeLessThanOrEqual(1_000 * 2 ** index);
    });
  });

  test("follows the step's retry options, which inherit from those of the class", async () => {
    const step = { onException: "reattempt", maxReattempts: 4, retry: { initial: "1m", max: "5m" } } as const;
    const waits = await waitsOf(failing(step, { retry: { initial: "1h", factor: 3, jitter: false } }));
    expect(waits).toEqual([60_000, 180_000, 300_000, 300_000]);
  });

  test("is that of the rule, if the rule has one", async () => {
    const rule = { on: Error, action: "reattempt", wait: "90s", maxReattempts: 3 } as const;
    expect(await waitsOf(failing({ onException: rule, retry: { initial: "1h" } }))).toEqual([90_000, 90_000, 90_000]);
  });

  test("is the one that a TransientError requests", async () => {
    const waits = await waitsOf(
      failing({}, {}, (w) => {
        if (w.attempt <= 2) throw new TransientError("later", { retryAfter: "30m" });
      }),
    );
    expect(waits.slice(0, 2)).toEqual([1_800_000, 1_800_000]);
  });
});

const places = [
  "loadHero",
  "cancelIf",
  "skipIf",
  "if",
  "beforeStepExecution",
  "aroundStepExecution",
  "afterStepExecution",
] as const;
type Place = (typeof places)[number];

/** A class that throws in one place for as long as it is broken. */
function classBrokenIn(place: Place, onException?: ExceptionAction) {
  const state = { broken: true, bodies: 0, after: 0 };
  const at = (current: Place, step?: string) => {
    if (state.broken && current === place && step !== "after") throw new CardError(`broken in ${current}`);
  };
  class Broken extends Workflow<object> {
    static loadHero = () => {
      at("loadHero");
      return {};
    };
    static {
      this.cancelIf(() => Boolean(at("cancelIf")));
      const options = onException === undefined ? {} : { onException };
      this.step("work", { skipIf: () => Boolean(at("skipIf")), if: () => at("if") ?? true, ...options }, () => {
        state.bodies += 1;
      });
      this.step("after", () => {
        state.after += 1;
      });
    }
    override beforeStepExecution({ step }: { step: string }) {
      at("beforeStepExecution", step);
    }
    override aroundStepExecution({ step }: { step: string }, next: () => Promise<void>) {
      at("aroundStepExecution", step);
      return next();
    }
    override afterStepExecution({ step }: { step: string }) {
      at("afterStepExecution", step);
    }
  }
  return { Broken, state };
}

const hero = { type: "User", id: "1" };

describe("an exception outside the body", () => {
  test.each(places)("in %s pauses the run by default; once fixed and resumed, the step runs", async (place) => {
    const { Broken, state } = classBrokenIn(place);
    const t = await start(Broken);
    const run = await t.pawl.start(Broken, undefined, { hero });
    await t.settle();
    const before = place === "afterStepExecution" ? 1 : 0;
    expect(state).toMatchObject({ bodies: before, after: 0 });
    expect(await attemptsOf(run)).toEqual(["work 1 failed paused_by_exception"]);
    expect((await run.executions())[0]?.error?.message).toBe(`broken in ${place}`);
    state.broken = false;
    await run.resume();
    await t.settle();
    expect(state).toMatchObject({ bodies: before + 1, after: 1 });
    expect(await run.status()).toBe("completed");
    await expectSound(t);
  });

  describe.each(places)("in %s is handled by the step's own policy", (place) => {
    test.each(["cancel", "skip", "fail", "reattempt"] as const)("%s", async (action) => {
      const { Broken, state } = classBrokenIn(place, action);
      const t = await start(Broken);
      const run = await t.pawl.start(Broken, undefined, { hero });
      await t.settle();
      expect(actionOf((await attemptsOf(run))[0])).toBe(action);
      expect(state.bodies).toBe(place === "afterStepExecution" ? 1 : 0);
    });
  });

  test("in aroundStepExecution after the body has run counts as an exception of the step", async () => {
    let bodies = 0;
    class Around extends Workflow {
      static {
        this.step("work", () => void (bodies += 1));
      }
      override async aroundStepExecution(_execution: unknown, next: () => Promise<void>) {
        await next();
        throw new Error("too late");
      }
    }
    const t = await start(Around);
    const run = await t.pawl.start(Around);
    await t.settle();
    expect(bodies).toBe(1);
    expect(await attemptsOf(run)).toEqual(["work 1 failed paused_by_exception"]);
  });

  test("in afterStepExecution does not replace the error of the body", async () => {
    class Twice extends Workflow {
      static {
        this.step("work", () => {
          throw new Error("first");
        });
      }
      override afterStepExecution() {
        throw new Error("second");
      }
    }
    const t = await start(Twice);
    const run = await t.pawl.start(Twice);
    await t.settle();
    expect((await run.executions())[0]?.error?.message).toBe("first");
  });

  test("afterStepExecution receives the error or the flow control that ended the body", async () => {
    const received: unknown[] = [];
    class Told extends Workflow {
      static {
        this.step("throws", { onException: "skip" }, () => {
          throw new CardError("declined");
        });
        this.step("skips", (w) => w.skip());
        this.step("returns", () => "done");
      }
      override afterStepExecution({ step, error, flow }: { step: string; error?: unknown; flow?: string }) {
        received.push([step, error instanceof CardError, flow]);
      }
    }
    const t = await start(Told);
    const run = await t.pawl.start(Told);
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(received).toEqual([
      ["throws", true, undefined],
      ["skips", false, "skip"],
      ["returns", false, undefined],
    ]);
  });
});

describe("the stored error", () => {
  forMemoryAnd("sqlite", (kind) => {
    const database = databaseFor(kind);

    test("has its message, stack and cause, in the execution and in the run", async () => {
      const Failing = failing({ onException: "fail" }, {}, function chargeTheCard() {
        const cause = new RangeError("limit of 100 € reached: 日本語 💶", { cause: "plain text" });
        throw Object.assign(new CardError("the card was declined", { cause }), { code: "E_CARD" });
      });
      const w = await database.world();
      const worker = await w.worker([Failing]);
      const run = await w.pawl.start(Failing);
      await worker.settle();
      const [execution] = await run.executions();
      const fromResult = (await errorOf(run.result({ timeout: "100s" }))).cause;
      for (const error of [execution?.error, (await run.get()).error, fromResult]) {
        expect(error).toBeInstanceOf(Error);
        expect(error).toMatchObject({
          message: "the card was declined",
          code: "E_CARD",
          cause: { name: "RangeError", message: "limit of 100 € reached: 日本語 💶", cause: "plain text" },
        });
        expect(error.stack).toContain("chargeTheCard");
        expect(error.cause.stack).toContain("exceptions.test.ts");
      }
    });

    test("of an exception that paused the run is in its execution, in its log and in its pauseReason", async () => {
      const Failing = failing({}, {}, () => {
        throw new CardError("the card was declined");
      });
      const w = await database.world();
      const worker = await w.worker([Failing]);
      const run = await w.pawl.start(Failing);
      await worker.settle();
      expect((await run.executions())[0]?.error?.stack).toContain("exceptions.test.ts");
      expect(await run.get()).toMatchObject({ pauseReason: 'Step "work" failed: the card was declined', error: null });
      expect((await run.history()).at(-1)).toMatchObject({
        type: "run.paused",
        node: "work",
        data: { error: { message: "the card was declined" } },
      });
    });
  });

  test.each([
    ["skip", "completed"],
    ["cancel", "canceled"],
    ["reattempt", "waiting"],
  ] as const)("is in its execution with the policy %s", async (onException, status) => {
    const Failing = failing({ onException }, {}, () => {
      throw new CardError("the card was declined", { cause: new Error("why") });
    });
    const t = await start(Failing);
    const run = await t.pawl.start(Failing);
    await t.settle();
    expect(await run.status()).toBe(status);
    expect((await run.executions())[0]?.error).toMatchObject({
      message: "the card was declined",
      cause: { message: "why" },
    });
    if (status === "canceled") expect((await run.get()).error?.message).toBe("the card was declined");
  });
});

describe("onError", () => {
  test("of the connection and of the class receive every exception, with run, workflow, step and attempt", async () => {
    const received: [string, string, ErrorContext][] = [];
    const reporter = (who: string) => (error: unknown, about: ErrorContext) =>
      void received.push([who, (error as Error).message, about]);
    const Flaky = failing(
      { onException: "reattempt", maxReattempts: 1, terminalAction: "skip", retry: { initial: 0 } },
      { onError: reporter("class") },
    );
    const pawl = await connect("memory:", { onError: reporter("connection"), logger: silent });
    onTestFinished(() => pawl.close());
    await pawl.worker({ workflows: [Flaky] }).start();
    const run = await pawl.start(Flaky);
    await run.result({ timeout: "100s" });
    const about = (attempt: number) => ({ runId: run.id, workflowName: "Working", step: "work", attempt });
    expect(received).toEqual([
      ["connection", "boom", about(1)],
      ["class", "boom", about(1)],
      ["connection", "boom", about(2)],
      ["class", "boom", about(2)],
    ]);
  });

  test("does not receive flow control", async () => {
    const received: unknown[] = [];
    const Skipping = failing({}, { onError: (error) => void received.push(error) }, (w) => w.skip());
    const t = await start(Skipping);
    await t.speedrun(await t.pawl.start(Skipping));
    expect(received).toEqual([]);
  });

  test("that throws changes nothing", async () => {
    const Failing = failing(
      { onException: "skip" },
      {
        onError: async () => {
          throw new Error("the reporter is broken");
        },
      },
    );
    const t = await start(Failing);
    const run = await t.pawl.start(Failing);
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
  });

  test("of a parent receives the errors of a subclass that declares none", async () => {
    const received: string[] = [];
    class Base extends Workflow {
      static {
        this.options({ onError: (error) => void received.push((error as Error).message) });
      }
    }
    class Sub extends Base {
      static {
        this.step("work", { onException: "skip" }, () => {
          throw new Error("boom");
        });
      }
    }
    const t = await start(Sub);
    await t.speedrun(await t.pawl.start(Sub));
    await until(() => received.length > 0);
    expect(received).toEqual(["boom"]);
  });
});
