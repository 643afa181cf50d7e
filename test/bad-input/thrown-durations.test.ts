/**
 * `TransientError` and `PauseError` may say when to continue. The value may be nonsense, because it often comes from
 * the header of another service.
 */
import { graph, type Logger, PauseError, PermanentError, step, TransientError, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { collectFatalErrors } from "./unhandled.js";

const nonsense: Record<string, unknown> = {
  NaN: Number.NaN,
  "a negative number": -1_000,
  Infinity: Number.POSITIVE_INFINITY,
  "seconds as text": "120",
  "a date as text": "Wed, 21 Oct 2015 07:28:00 GMT",
  "an empty text": "",
  null: null,
  "a date": new Date(0),
  "a symbol": Symbol("soon"),
  "a function": () => 5,
  "an object that throws": {
    get seconds() {
      throw new Error("of a getter");
    },
  },
};

const unreadable = () => {
  const error = new TransientError("come back");
  const get = () => {
    throw new Error("of a getter");
  };
  throw Object.defineProperty(error, "retryAfter", { get });
};

type Throw = () => never;
const transient = (retryAfter: unknown) => () => {
  throw new TransientError("come back", { retryAfter: retryAfter as never });
};
const pausing = (recheckAfter: unknown, resumeOn?: unknown) => () => {
  throw new PauseError("look at it", { recheckAfter: recheckAfter as never, resumeOn: resumeOn as never });
};

/** Throws in the first call and returns "done" afterwards. */
const once = (fail: Throw) => {
  let calls = 0;
  return () => {
    calls += 1;
    return calls === 1 ? fail() : "done";
  };
};

const places = {
  "the handler": (fail: Throw) => workflow("w", once(fail)),
  "a step": (fail: Throw) => {
    const body = once(fail);
    return workflow("w", (ctx) => ctx.step("s", body));
  },
  "a step of a class": (fail: Throw) => {
    const body = once(fail);
    return class W extends Workflow {
      static {
        this.step("s", () => void body());
      }
    };
  },
  "a step of a graph": (fail: Throw) => graph("w", [step("s", once(fail))]),
  "a branch": (fail: Throw) => {
    const choose = once(fail);
    return workflow("w", (ctx) =>
      ctx.branch(
        "b",
        () => {
          choose();
          return "a";
        },
        { a: () => "done" },
      ),
    );
  },
};

async function inPawl(define: (typeof places)[keyof typeof places], fail: Throw) {
  const fatal = collectFatalErrors();
  const warnings: string[] = [];
  const note = (text: unknown) => void warnings.push(String(text));
  const logger: Logger = { debug: () => {}, info: () => {}, warn: note, error: () => {} };
  const fine = workflow("fine", (ctx) => ctx.step("s", () => "fine"));
  const defined = define(fail);
  const t = await testPawl({ workflows: [defined, fine], logger });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(defined as ReturnType<(typeof places)["a step"]>);
  await t.settle();
  const beside = await t.pawl.start(fine);
  await t.settle();
  expect(await beside.result({ timeout: "100s" })).toBe("fine");
  return { t, run, warnings, fatal };
}

describe.each(Object.entries(places))("in %s", (_place, define) => {
  test.each(Object.entries(nonsense))(
    "an invalid retryAfter (%s) falls back to the delay of the retry policy",
    async (_name, retryAfter) => {
      const { t, run, warnings, fatal } = await inPawl(define, transient(retryAfter));
      expect(fatal).toEqual([]);
      expect(await run.status()).toBe("waiting");
      // The first delay of the default policy is between half a second and a second.
      await t.advance("1s");
      await t.settle();
      expect(await run.status()).toBe("completed");
      expect(warnings.filter((one) => one.includes("retryAfter"))).toHaveLength(1);
      expect(fatal).toEqual([]);
    },
  );

  test("a retryAfter whose getter throws falls back to the delay of the retry policy", async () => {
    const { t, run, fatal } = await inPawl(define, unreadable);
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
    expect(fatal).toEqual([]);
  });

  test.each(Object.entries(nonsense))(
    "an invalid recheckAfter (%s) leaves the run paused until it is resumed",
    async (_name, recheckAfter) => {
      const { t, run, warnings, fatal } = await inPawl(define, pausing(recheckAfter));
      expect(fatal).toEqual([]);
      expect(await run.status()).toBe("paused");
      expect((await run.explain()).text).toContain("look at it");
      expect(warnings.filter((one) => one.includes("recheckAfter"))).toHaveLength(1);
      await run.resume();
      await t.settle();
      expect(await run.status()).toBe("completed");
    },
  );

  test.each([
    ["a symbol", Symbol("x")],
    ["a number", 7],
    ["an empty text", ""],
    ["null", null],
  ])("an invalid resumeOn (%s) leaves the run paused until it is resumed", async (_name, resumeOn) => {
    const { t, run, warnings, fatal } = await inPawl(define, pausing(undefined, resumeOn));
    expect(fatal).toEqual([]);
    expect(await run.status()).toBe("paused");
    expect(warnings.filter((one) => one.includes("resumeOn"))).toHaveLength(1);
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
  });
});

describe.each(Object.entries(nonsense))("%s", (_name, value) => {
  test("as retryAfter of a compensation falls back to the delay of the retry policy", async () => {
    const fatal = collectFatalErrors();
    const undo = once(transient(value));
    const saga = workflow("saga", async (ctx) => {
      await ctx.step("book", () => 1, { compensate: undo });
      throw new PermanentError("no");
    });
    const t = await testPawl({ workflows: [saga], logger: { debug() {}, info() {}, warn() {}, error() {} } });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(saga);
    await t.settle();
    expect(fatal).toEqual([]);
    await t.advance("1s");
    await t.settle();
    expect(await run.status()).toBe("failed");
    expect(fatal).toEqual([]);
  });

  test("as recheckAfter of a compensation leaves the run paused until it is resumed", async () => {
    const fatal = collectFatalErrors();
    const undo = once(pausing(value));
    const book = step("book", () => 1, { compensate: undo });
    const fails = step("fails", () => {
      throw new PermanentError("no");
    });
    const saga = graph("saga", [book, fails.after(book)]);
    const t = await testPawl({ workflows: [saga], logger: { debug() {}, info() {}, warn() {}, error() {} } });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(saga);
    await t.settle();
    expect(await run.status()).toBe("paused");
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("failed");
    expect(fatal).toEqual([]);
  });
});

test.each([
  [
    "throws",
    () => {
      throw new Error("of the policy");
    },
  ],
  ["answers with nonsense", () => Number.NaN],
  [
    "is async and rejects",
    async () => {
      throw new Error("of the policy");
    },
  ],
])("when the backoff function %s, there are no more attempts and the original error stands", async (_name, backoff) => {
  const fatal = collectFatalErrors();
  const options = { retry: { backoff: backoff as never } };
  const inHandler = workflow("in_handler", options, transient(undefined));
  const undoing = workflow("undoing", options, async (ctx) => {
    await ctx.step("book", () => 1, {
      compensate: () => {
        throw new Error("cannot be undone yet");
      },
    });
    throw new PermanentError("no");
  });
  const t = await testPawl({
    workflows: [inHandler, undoing],
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  onTestFinished(() => t.close());
  const failed = await t.pawl.start(inHandler);
  const paused = await t.pawl.start(undoing);
  await t.settle();
  expect(fatal).toEqual([]);
  expect(await failed.status()).toBe("failed");
  expect(await paused.status()).toBe("paused");
});
