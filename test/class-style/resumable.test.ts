/** Resumable steps: where the cursor is, what interrupts them, and what survives an interruption. */
import {
  CursorTooLargeError,
  type ExecutionInfo,
  InvalidInputError,
  type ResumableStepOptions,
  type StepIterator,
  Workflow,
  type WorkflowClass,
} from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { start, startInMemory, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

let executed: unknown[] = [];
beforeEach(() => {
  executed = [];
});

type Options = ResumableStepOptions<Workflow>;

/** A class with one resumable step, and a step after it. */
function loop(body: (iter: StepIterator, w: Workflow) => unknown, options: Options = {}): WorkflowClass<Workflow> {
  return class Loop extends Workflow {
    static {
      this.resumableStep("loop", options, (w, iter) => body(iter, w));
      this.step("after", () => void executed.push("after"));
    }
  };
}

const numbers = Array.from({ length: 10 }, (_, index) => index);
const describeExecutions = (
  executions: readonly { step: string; attempt: number; state: string; outcome: string | null }[],
) =>
  executions
    .filter(({ step }) => step === "loop")
    .map(({ attempt, state, outcome }) => `${attempt} ${state} ${outcome}`);

describe("an execution is interrupted and continued by a successor that starts at the cursor", () => {
  test("after maxIterations items, counted per execution", async () => {
    const seen: unknown[] = [];
    const Loop = loop(
      (iter) => {
        seen.push([iter.cursor, iter.resumed]);
        return iter.over(numbers, (n) => void executed.push(n));
      },
      { maxIterations: 4 },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([...numbers, "after"]);
    expect(seen).toEqual([
      [null, false],
      [4, true],
      [8, true],
    ]);
    const executions = await run.executions();
    expect(describeExecutions(executions)).toEqual([
      "1 completed continued",
      "2 completed continued",
      "3 completed success",
    ]);
    const [first, second, third] = executions;
    expect([first?.continuesFrom, second?.continuesFrom, third?.continuesFrom]).toEqual([null, first?.id, second?.id]);
    expect([first?.successor, second?.successor, third?.successor]).toEqual([second?.id, third?.id, null]);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("after maxRuntime", async () => {
    const Loop: WorkflowClass<Workflow> = loop(
      (iter) =>
        iter.over(numbers, (n) => {
          executed.push(n);
          t.clock.moveTo(t.clock.read() + 60_000);
        }),
      { maxRuntime: "3 minutes" },
    );
    const t = await startInMemory(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([...numbers, "after"]);
    expect(describeExecutions(await run.executions())).toEqual([
      "1 completed continued",
      "2 completed continued",
      "3 completed continued",
      "4 completed success",
    ]);
  });

  test("and yields to runs that wait for a free slot", async () => {
    const Loop = loop((iter) => iter.over(numbers.slice(0, 4), (n) => void executed.push(n)), { maxIterations: 2 });
    class Other extends Workflow {
      static {
        this.step("other", () => void executed.push("other"));
      }
    }
    const w = await world();
    await w.pawl.start(Loop);
    await w.pawl.start(Other);
    const { settle } = await w.worker([Loop, Other], { concurrency: 1 });
    await settle();
    expect(executed.indexOf("other")).toBeLessThan(executed.indexOf(2));
    expect(executed).toHaveLength(6);
  });

  test("when its worker shuts down", async () => {
    const started = gate();
    const proceed = gate();
    const Loop = loop((iter) =>
      iter.over(numbers, async (n) => {
        executed.push(n);
        if (n !== 3) return;
        started.open();
        await proceed.opened;
      }),
    );
    const w = await world();
    const first = await w.worker([Loop], { grace: 10_000 });
    const run = await w.pawl.start(Loop);
    void first.settle();
    await started.opened;
    const stopped = first.worker.stop();
    proceed.open();
    await stopped;
    expect(executed).toEqual([0, 1, 2, 3]);
    const second = await w.worker([Loop]);
    await second.settle();
    expect(executed).toEqual([...numbers, "after"]);
    expect(describeExecutions(await run.executions())).toEqual(["1 completed continued", "2 completed success"]);
  });

  test("when the run is paused; when it is resumed, it continues at its cursor", async () => {
    const Loop: WorkflowClass<Workflow> = loop((iter, w) =>
      iter.over(numbers, async (n) => {
        executed.push(n);
        if (n === 3) await t.pawl.run(w.runId).pause("a look");
      }),
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", currentStep: "loop", pauseReason: "a look" });
    const at = executed.length;
    expect(at).toBeLessThan(numbers.length);
    await t.assertCursor(run, at);
    await t.assertStepHasSuccessor(run, "loop");
    await run.resume();
    await t.settle();
    expect(executed).toEqual([...numbers, "after"]);
    expect(describeExecutions(await run.executions())).toEqual(["1 completed continued", "2 completed success"]);
  });

  test("when the run is canceled, and then there is no successor", async () => {
    const Loop: WorkflowClass<Workflow> = loop((iter, w) =>
      iter.over(numbers, async (n) => {
        executed.push(n);
        if (n === 3) await t.pawl.run(w.runId).cancel("enough");
      }),
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "enough" } });
    expect(executed.length).toBeLessThan(numbers.length);
    expect(describeExecutions(await run.executions())).toEqual(["1 canceled canceled_by_flow_control"]);
  });

  test("by skipTo, which may wait", async () => {
    const Loop = loop(async (iter) => {
      executed.push(iter.cursor);
      if (iter.cursor === null) iter.skipTo("page 2", { wait: "1 hour" });
      if (iter.cursor === "page 2") iter.skipTo("page 3");
    });
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    const begin = t.clock.read();
    await t.settle();
    expect(executed).toEqual([null]);
    await t.assertCursor(run, "page 2");
    await t.assertStepHasSuccessor(run, "loop");
    expect((await run.executions())[1]).toMatchObject({
      state: "scheduled",
      scheduledFor: new Date(begin + 3_600_000),
      startedAt: null,
    });
    await t.speedrun(run);
    expect(executed).toEqual([null, "page 2", "page 3", "after"]);
    expect(t.clock.read()).toBe(begin + 3_600_000);
  });

  test("by suspend", async () => {
    const Loop = loop(async (iter, w) => {
      executed.push([iter.cursor, iter.resumed, iter.advanced]);
      if (iter.cursor === 1) return;
      await iter.advance();
      executed.push(iter.advanced);
      w.suspend({ wait: "1 day" });
    });
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([[null, false, false], true, [1, true, false], "after"]);
    expect(describeExecutions(await run.executions())).toEqual(["1 completed continued", "2 completed success"]);
  });

  test("even if its code catches the interruption", async () => {
    const Loop = loop(
      async (iter) => {
        for (let n = iter.cursor ?? 0; n < 4; n += 1) {
          executed.push(n);
          await iter.set(n + 1).catch(() => {});
        }
      },
      { maxIterations: 2 },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([0, 1, 2, 3, "after"]);
    expect(describeExecutions(await run.executions())).toEqual(["1 completed continued", "2 completed success"]);
  });

  test("a thousand times without moving its cursor, and the run is then paused", async () => {
    const Loop = loop((_iter, w) => w.suspend());
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    const { status, pauseReason } = await run.get();
    expect(status).toBe("paused");
    expect(pauseReason).toContain("1000 times without moving its cursor");
    expect((await run.executions()).filter(({ outcome }) => outcome === "continued")).toHaveLength(1_001);
  });
});

describe("the cursor", () => {
  test.each<[string, unknown]>([
    ["a Date", new Date(86_400_000)],
    ["a bigint", 12n ** 30n],
    ["a Map", new Map([["a", { b: [1] }]])],
    ["nested arrays, as two loops need them", [3, [4, "x"]]],
    ["NaN", Number.NaN],
    ["0", 0],
    ["an empty string", ""],
    ["false", false],
  ])("may be %s", async (_what, value) => {
    const Loop = loop(async (iter) => {
      if (iter.resumed) return void executed.push(iter.cursor);
      await iter.set(value);
      iter.skipTo(value);
    });
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([value, "after"]);
  });

  test("of more than 128 KB is refused, with its name and size, and the step's policy decides", async () => {
    const Loop = loop((iter) => iter.set("x".repeat(128 * 1024)));
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused" });
    const [execution] = await run.executions();
    expect(execution).toMatchObject({ outcome: "paused_by_exception", error: { code: "CURSOR_TOO_LARGE" } });
    expect(execution?.error?.message).toContain("Keep a position in the cursor");
    expect(new CursorTooLargeError({ step: "x", bytes: 1, limit: 1 }).code).toBe("CURSOR_TOO_LARGE");
  });

  test("is kept when the step fails, and when it is reattempted; with rewind it is reset", async () => {
    const seen: unknown[] = [];
    let turn = 0;
    const Loop = loop(
      (iter, w) => {
        seen.push([iter.cursor, iter.resumed]);
        turn += 1;
        return iter.over(numbers, (n) => {
          if (n === 2 && turn === 1) throw new Error("once");
          if (n === 5 && turn === 2) w.reattempt();
          if (n === 7 && turn === 3) w.reattempt({ rewind: true });
          executed.push(n);
        });
      },
      { onException: "reattempt" },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(seen).toEqual([
      [null, false],
      [2, true],
      [5, true],
      [null, false],
    ]);
    expect(executed).toEqual([0, 1, 2, 3, 4, 5, 6, ...numbers, "after"]);
    expect(describeExecutions(await run.executions())).toEqual([
      "1 failed reattempted_by_exception",
      "2 completed reattempted",
      "3 completed reattempted",
      "4 completed success",
    ]);
  });

  test("is kept after a pause by an exception and a resume", async () => {
    let broken = true;
    const Loop = loop((iter) =>
      iter.over(numbers, (n) => {
        if (n === 6 && broken) throw new Error("broken");
        executed.push(n);
      }),
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    await t.assertCursor(run, 6);
    broken = false;
    await run.resume();
    await t.settle();
    expect(executed).toEqual([...numbers, "after"]);
  });

  test("is cleared when the step completes, and the progress remains visible", async () => {
    const Loop = loop((iter) => iter.over(numbers, () => {}));
    const w = await world();
    const { settle } = await w.worker([Loop]);
    const run = await w.pawl.start(Loop);
    await settle();
    expect(await w.store.cursors(run.id)).toMatchObject([{ node: "loop", cursor: null }]);
    expect(await run.progress()).toMatchObject([{ node: "loop", done: 10, total: 10 }]);
  });

  test("advances by one if it is a whole number, from 0 or from a given value", async () => {
    const Loop = loop(async (iter) => {
      await iter.advance();
      executed.push(iter.cursor);
      await iter.advance({ from: 100 });
      executed.push(iter.cursor);
      await iter.set(5n);
      await iter.advance();
      executed.push(iter.cursor);
      await iter.set(null);
      await iter.advance({ from: 100 });
      executed.push(iter.cursor);
      await iter.set("token");
      executed.push(await errorOf(iter.advance()));
      await iter.set(1.5);
      executed.push(await errorOf(iter.advance()));
    });
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed.slice(0, 4)).toEqual([1, 2, 6n, 101]);
    expect(executed.slice(4, 6)).toEqual([expect.any(InvalidInputError), expect.any(InvalidInputError)]);
    expect((executed[4] as Error).message).toContain('"token"');
  });

  test("has a readable description", async () => {
    const Loop = loop(async (iter) => {
      await iter.set([1, "b"]);
      executed.push(iter.name, iter.description);
    });
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed.slice(0, 2)).toEqual(["loop", 'at step "loop", cursor [1,"b"]']);
  });
});

describe("iterating over", () => {
  const table = Array.from({ length: 23 }, (_, index) => ({ id: index + 1 }));
  const fetch = (after: number | null, limit: number) => {
    executed.push(`fetch ${after}`);
    return Promise.resolve(table.filter(({ id }) => id > (after ?? 0)).slice(0, limit));
  };

  test("records: pages are fetched after the cursor, which is the key of the last record done", async () => {
    const Loop = loop((iter) => iter.records({ fetch, key: "id", size: 10 }, ({ id }) => void executed.push(id)), {
      maxIterations: 15,
    });
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    const ids = table.map(({ id }) => id);
    expect(executed).toEqual([
      "fetch null",
      ...ids.slice(0, 10),
      "fetch 10",
      ...ids.slice(10, 15),
      "fetch 15",
      ...ids.slice(15),
      "fetch 23",
      "after",
    ]);
  });

  test("batches: the cursor is the key of the last record of the batch", async () => {
    const key = ({ id }: { id: number }) => id;
    const Loop = loop((iter) => iter.batches({ fetch, key, size: 10 }, (batch) => void executed.push(batch.length)));
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed).toEqual(["fetch null", 10, "fetch 10", 10, "fetch 20", 3, "fetch 23", "after"]);
  });

  test("each: an async iterable of items with their cursors", async () => {
    async function* pairs(after: number | null) {
      for (const { id } of table.filter((row) => row.id > (after ?? 0))) yield [`item ${id}`, id] as const;
    }
    const Loop = loop((iter) => iter.each(pairs, (item) => void executed.push(item)), { maxIterations: 20 });
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed).toEqual([...table.map(({ id }) => `item ${id}`), "after"]);
  });

  test("over: anything that can be iterated", async () => {
    const Loop = loop(
      (iter) => iter.over(new Set("abcde"), (letter, index) => void executed.push(`${index}${letter}`)),
      {
        maxIterations: 2,
      },
    );
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed).toEqual(["0a", "1b", "2c", "3d", "4e", "after"]);
  });

  test("an empty collection", async () => {
    const Loop = loop(async (iter) => {
      await iter.over([], () => void executed.push("never"));
      await iter.records({ fetch: () => [], key: "id" as never }, () => void executed.push("never"));
    });
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed).toEqual(["after"]);
  });
});

describe("a durable call for an item", () => {
  test("is made once for each item, however often the loop is interrupted", async () => {
    const Loop = loop(
      async (iter, w) => {
        const items = await w.step("list", () => {
          executed.push("list");
          return numbers;
        });
        await iter.over(items, async (n) => {
          await w.step("send", () => void executed.push(n));
          await w.sleep("nap", "1 minute");
          await w.step("send", () => void executed.push(-n));
        });
      },
      { maxIterations: 3 },
    );
    const t = await start(Loop);
    const begin = t.clock.read();
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual(["list", ...numbers.flatMap((n) => [n, -n]), "after"]);
    expect(t.clock.read() - begin).toBe(10 * 60_000);
    executed = [];
    await t.crashTest(Loop, undefined, { points: 40, setup: () => (executed = []) });
    expect(executed.filter((line) => line === "list")).toHaveLength(1);
  });

  test("in a hand-written loop needs its own name, and the error says so", async () => {
    const body = (name: (n: number) => string) => async (iter: StepIterator, w: Workflow) => {
      for (let n = iter.cursor ?? 0; n < 5; n += 1) {
        await w.step(name(n), () => void executed.push(n));
        await iter.set(n + 1);
      }
    };
    const Careless = loop(body(() => "send"));
    const t = await start(Careless);
    const run = await t.pawl.start(Careless);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused" });
    expect((await run.get()).pauseReason).toContain('"send" is used again after the cursor of step "loop" has moved');
    executed = [];
    const Careful = loop(
      body((n) => `send ${n}`),
      { maxIterations: 2 },
    );
    const other = await start(Careful);
    await other.speedrun(await other.pawl.start(Careful));
    expect(executed).toEqual([0, 1, 2, 3, 4, "after"]);
  });
});

describe("checkpoints", () => {
  test("that are not awaited do not crash the process when the step is interrupted", async () => {
    const Loop = loop(
      async (iter) => {
        for (let n = iter.cursor ?? 0; n < 6; n += 1) void iter.set(n + 1);
        await iter.checkpoint();
      },
      { maxIterations: 2 },
    );
    const t = await start(Loop);
    await t.speedrun(await t.pawl.start(Loop));
    expect(executed).toEqual(["after"]);
  });

  test("repeat at most the item in flight when the worker dies, wherever that is", async () => {
    const Loop = loop((iter) => iter.over(numbers, (n) => void executed.push(n)), { maxIterations: 4 });
    const t = await start(Loop);
    let undisturbed = true;
    const report = await t.crashTest(Loop, undefined, {
      setup: () => {
        if (!undisturbed) expect(executed.length - 11).toBeLessThanOrEqual(1);
        undisturbed = false;
        executed = [];
      },
    });
    expect(report.points).toBeGreaterThan(20);
    expect(new Set(executed)).toEqual(new Set([...numbers, "after"]));
  });

  test("that are relaxed continue while the cursor is being written, and lose no item", async () => {
    const many = Array.from({ length: 5_000 }, (_, index) => index);
    const Loop = loop((iter) => iter.over(many, (n) => void executed.push(n)), {
      checkpoint: "relaxed",
      maxIterations: 1_500,
    });
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect(executed).toEqual([...many, "after"]);
    expect(describeExecutions(await run.executions())).toHaveLength(4);
    const crashed = await t.crashTest(Loop, undefined, { points: 10 });
    expect(crashed.points).toBeGreaterThan(0);
  });

  test("report the progress of the step, its rate and its remaining time", async () => {
    const half = gate();
    const proceed = gate();
    const Loop = loop((iter) =>
      iter.over(numbers, async (n) => {
        await new Promise((resolve) => setTimeout(resolve, 2));
        if (n !== 5) return;
        half.open();
        await proceed.opened;
      }),
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    const settled = t.settle();
    await half.opened;
    const [progress] = await run.progress();
    expect(progress).toMatchObject({ node: "loop", done: 5, total: 10 });
    expect(progress?.rate).toBeGreaterThan(0);
    expect(progress?.etaMs).toBeGreaterThan(0);
    proceed.open();
    await settled;
  });
});

describe("speedrunCurrentStep", () => {
  test("runs one step at a time, without interruptions", async () => {
    class Steps extends Workflow {
      static {
        this.step("first", () => void executed.push("first"));
        this.resumableStep("loop", { wait: "2 days", maxIterations: 2 }, (_w, iter) =>
          iter.over(numbers, (n) => void executed.push(n)),
        );
        this.step("last", () => void executed.push("last"));
      }
    }
    const t = await start(Steps);
    const run = await t.pawl.start(Steps, undefined, { delay: "1 hour" });
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "first", outcome: "success" });
    expect(executed).toEqual(["first"]);
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "loop", attempt: 1, outcome: "success" });
    expect(executed).toEqual(["first", ...numbers]);
    expect(await run.status()).toBe("waiting");
    expect(await t.speedrunCurrentStep(run)).toMatchObject({ step: "last" });
    await t.speedrun(run);
    expect(await run.status()).toBe("completed");
  });
});

describe("an execution that has moved its cursor and then failed", () => {
  const waits = (executions: readonly ExecutionInfo[]) =>
    executions.slice(1).map((one, index) => Number(one.scheduledFor) - Number(executions[index]?.finishedAt));

  test("starts a new count of reattempts: one that makes progress each time is never given up", async () => {
    let failures = 0;
    const Loop = loop(
      (iter) =>
        iter.over(numbers, (n) => {
          executed.push(n);
          if (n > 0 && executed.filter((one) => one === n).length === 1) {
            failures += 1;
            throw new Error(`no ${n} today`);
          }
        }),
      { onException: "reattempt", maxReattempts: 1 },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    expect([await run.status(), failures]).toEqual(["completed", 9]);
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("continues the count if the cursor has not moved, and is given up", async () => {
    const Loop = loop(
      (iter) =>
        iter.over(numbers, (n) => {
          executed.push(n);
          if (n === 3) throw new Error("never 3");
        }),
      { onException: "reattempt", maxReattempts: 2 },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.settle();
    await t.advance("1 day");
    expect(await run.status()).toBe("paused");
    // The first execution got as far as 3 and starts the count; two reattempts follow it.
    expect(executed).toEqual([0, 1, 2, 3, 3, 3]);
  });

  test("starts a new backoff", async () => {
    const failsAt = [0, 0, 0, 4, 4, 7];
    const Loop = loop(
      (iter) =>
        iter.over(numbers, (n) => {
          if (failsAt[0] !== n) return;
          failsAt.shift();
          throw new Error("not now");
        }),
      { onException: "reattempt", retry: { initial: "1s", factor: 2, jitter: false } },
    );
    const t = await start(Loop);
    const run = await t.pawl.start(Loop);
    await t.speedrun(run);
    const executions = (await run.executions()).filter(({ step }) => step === "loop");
    expect(waits(executions)).toEqual([1_000, 2_000, 4_000, 1_000, 2_000, 1_000]);
  });
});
