/**
 * Parallel steps and tasks: how conditions, exceptions, flow control and operators affect one of them, and the others.
 */
import { PermanentError, type StepDeclarationOptions, type StepExecution, Workflow } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf, expectSound, logOf, recorded, refused } from "../support/run-checks.js";
import { databaseFor, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

type Any = Workflow<unknown, void, unknown>;
type Body = (w: Any) => unknown;
type Options = Omit<StepDeclarationOptions<any>, "skipIf" | "if"> & { skipIf?: () => boolean; if?: boolean };

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

const recordName = (name: string, body: Body) => (w: Any) => {
  executed.push(name);
  return body(w);
};
const noop: Body = () => {};

/**
 * begin → left → end, and begin → right → end. The test provides left and right; "far" comes after left alone and shows
 * whether that path continues.
 */
function diamond(
  left: Body | [Options, Body],
  right: Body | [Options, Body] = noop,
  more: (it: any) => void = () => {},
) {
  const parts = (part: Body | [Options, Body]): [Options, Body] => (typeof part === "function" ? [{}, part] : part);
  const [[leftOptions, leftBody], [rightOptions, rightBody]] = [parts(left), parts(right)];
  return class Diamond extends Workflow<unknown, void, unknown> {
    static {
      this.options({ name: "Diamond" });
      this.step("begin", recordName("begin", noop));
      this.task("left", { dependsOn: "begin", ...leftOptions }, recordName("left", leftBody));
      this.task("right", { dependsOn: "begin", ...rightOptions }, recordName("right", rightBody));
      this.task("far", { dependsOn: "left" }, recordName("far", noop));
      this.step("end", { dependsOn: ["left", "right"] }, recordName("end", noop));
      more(this);
    }
  };
}

const boom: Body = () => {
  throw new Error("boom");
};

const statesOf = async (run: AnyRun) => (await run.nodes()).map(({ name, state }) => `${name} ${state}`).toSorted();

describe("conditions", () => {
  test("skipping a node in the middle does not skip its successors", async () => {
    const type = diamond([{ skipIf: () => true }, boom], [{ if: false }, boom]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await statesOf(run)).toEqual([
      "begin completed",
      "end completed",
      "far completed",
      "left skipped",
      "right skipped",
    ]);
    expect(executed.toSorted()).toEqual(["begin", "end", "far"]);
  });

  test("are evaluated when a node is about to run, and again at each attempt", async () => {
    let evaluations = 0;
    const type = diamond([
      {
        skipIf: () => ++evaluations === 3,
        onException: "reattempt",
        retry: { initial: "1s", jitter: false },
      },
      boom,
    ]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect((await attemptsOf(run)).filter((line) => line.startsWith("left"))).toEqual([
      "left 1 failed reattempted_by_exception",
      "left 2 failed reattempted_by_exception",
      "left 3 skipped skipped_by_condition",
    ]);
    expect(executed).toContain("far");
  });

  test("cancelIf cancels the run at the first node that finds it true, and nodes in flight are canceled with it", async () => {
    let isLate = false;
    const waiting = gate();
    const type = diamond(
      () => {
        isLate = true;
      },
      () => waiting.opened,
      (it) => it.cancelIf(() => isLate),
    );
    const w = await world();
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type);
    const settled = worker.settle();
    await until(async () => (await statesOf(run)).includes("left completed"));
    waiting.open();
    await settled;
    await until(async () => (await run.status()) === "canceled");
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "A cancelIf condition is true." } });
    expect(await attemptsOf(run)).toContain("far 1 canceled canceled_by_condition");
    expect(executed).not.toContain("end");
    await expectSound(w);
  });
});

describe("the hero and the hooks", () => {
  test("each task loads its hero and calls its hooks with its own name", async () => {
    const hookCalls: string[] = [];
    let loads = 0;
    class Hooked extends Workflow<{ id: string }> {
      static loadHero = (id: string) => {
        loads += 1;
        return { id };
      };
      static {
        this.step("a", () => {});
        this.task("t", { dependsOn: "a" }, (w) => hookCalls.push(`t for ${w.hero.id}`));
        this.task("u", { dependsOn: "a", skipIf: () => true }, () => {});
      }
      override beforeStepExecution({ step, attempt }: StepExecution) {
        hookCalls.push(`before ${step} ${attempt}`);
      }
      override afterStepExecution({ step }: StepExecution) {
        hookCalls.push(`after ${step}`);
      }
    }
    const t = await start(Hooked);
    const run = await t.pawl.start(Hooked, undefined, { hero: { type: "User", id: "ada" } });
    await t.speedrun(run);
    expect(loads).toBe(3);
    expect(hookCalls).toEqual(["before a 1", "after a", "before t 1", "t for ada", "after t"]);
  });
});

describe("waits", () => {
  test("each node waits separately, from the end of its predecessors; meanwhile the run is parked", async () => {
    const type = diamond([{ wait: "2h" }, noop], [{ wait: "1h" }, noop]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "waiting" });
    expect(await statesOf(run)).toContain("left scheduled");
    await t.advance("1h");
    expect(executed).toEqual(["begin", "right"]);
    await t.advance("59m");
    expect(executed).toEqual(["begin", "right"]);
    await t.advance("1m");
    expect(executed.toSorted()).toEqual(["begin", "end", "far", "left", "right"]);
    expect(await run.status()).toBe("completed");
  });

  test("bodies that wait for signals wait in parallel, each for its own", async () => {
    const type = diamond(
      (w) => w.waitForSignal("left"),
      async (w) => {
        await w.sleep("nap", "1h");
        return w.waitForSignal("right");
      },
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await run.signal("right", 2);
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await run.signal("left", 1);
    await t.settle();
    expect(executed).toContain("far");
    expect(executed).not.toContain("end");
    await t.advance("1h");
    expect(await run.status()).toBe("completed");
    const outputs = (await run.history()).filter(({ node, type }) => type === "step.completed" && node !== null);
    expect(Object.fromEntries(outputs.map(({ node, data }) => [node, data.output]))).toMatchObject({
      left: 1,
      right: 2,
    });
  });
});

forMemoryAnd("mysql", (kind) => {
  const database = databaseFor(kind);

  test("pause: a node in flight finishes and is recorded, and nothing starts; resume retries the failed node", async () => {
    const w = await database.world();
    const waiting = gate();
    let broken = true;
    const type = diamond(
      () => {
        if (broken) throw new Error("the bank is closed");
      },
      async () => {
        await waiting.opened;
        return "worked";
      },
    );
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type);
    const settled = worker.settle();
    await recorded(run, "run.paused left");
    waiting.open();
    await settled;
    await until(async () => (await run.status()) === "paused");
    expect(await run.get()).toMatchObject({
      status: "paused",
      pauseReason: 'Step "left" failed: the bank is closed',
    });
    expect(await statesOf(run)).toEqual([
      "begin completed",
      "end pending",
      "far pending",
      "left failed",
      "right completed",
    ]);
    broken = false;
    await run.resume();
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.filter((name) => name === "right")).toHaveLength(1);
    expect((await attemptsOf(run)).filter((line) => line.startsWith("left"))).toEqual([
      "left 1 failed paused_by_exception",
      "left 2 completed success",
    ]);
    await expectSound(w);
  });
});

describe("exceptions", () => {
  test("reattempt: the other nodes proceed meanwhile, and the run waits for the reattempt", async () => {
    const type = diamond([
      { onException: "reattempt", retry: { initial: "1 minute", jitter: false } },
      (w) => {
        if (w.attempt < 3) throw new Error("busy");
      },
    ]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(executed).toEqual(["begin", "left", "right"]);
    expect(await run.get()).toMatchObject({ status: "waiting" });
    await t.advance("3 minutes");
    expect(await run.status()).toBe("completed");
    expect(executed.filter((name) => name === "right")).toHaveLength(1);
  });

  test("skip: the successors run", async () => {
    const type = diamond([{ onException: "skip" }, boom]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toContain("left 1 failed skipped_by_exception");
    expect(executed.toSorted()).toEqual(["begin", "end", "far", "left", "right"]);
  });

  test.each<[what: string, options: Options, body: Body]>([
    ["fail", { onException: "fail" }, boom],
    [
      "a PermanentError",
      {},
      () => {
        throw new PermanentError("boom");
      },
    ],
  ])(
    "%s: nodes in flight finish and are recorded, nothing new starts, then the run fails",
    async (_what, options, body) => {
      const waiting = gate();
      const beside = (it: any) => it.task("beside", { dependsOn: "right" }, recordName("beside", noop));
      const type = diamond([options, body], () => waiting.opened, beside);
      const w = await world();
      const worker = await w.worker([type]);
      const run = await w.pawl.start(type);
      const settled = worker.settle();
      await recorded(run, "step.failed left");
      expect(await run.status()).toBe("running");
      waiting.open();
      await settled;
      expect(await run.get()).toMatchObject({ status: "failed", error: { message: "boom" } });
      expect(await attemptsOf(run)).toEqual([
        "begin 1 completed success",
        "left 1 failed failed_by_exception",
        "right 1 completed success",
      ]);
      expect(executed).toEqual(["begin", "left", "right"]);
      await expectSound(w);
    },
  );

  test("cancel: the run ends at once; nodes in flight are aborted, and their results are ignored", async () => {
    const aborted = gate();
    const type = diamond(
      [{ onException: "cancel" }, boom],
      (w) => new Promise(() => w.abortSignal.addEventListener("abort", () => aborted.open())),
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "boom" } });
    await aborted.opened;
    expect(executed).toEqual(["begin", "left", "right"]);
    await expectSound(t);
  });

  test("two nodes that fail at the same time pause the run once; resume retries both", async () => {
    let broken = true;
    const fragile: Body = () => {
      if (broken) throw new Error("down");
    };
    const type = diamond(fragile, fragile);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.status()).toBe("paused");
    broken = false;
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect((await attemptsOf(run)).toSorted()).toEqual([
      "begin 1 completed success",
      "end 1 completed success",
      "far 1 completed success",
      "left 1 failed paused_by_exception",
      "left 2 completed success",
      "right 1 failed paused_by_exception",
      "right 2 completed success",
    ]);
    await expectSound(t);
  });

  test("a signal for a waiting node, sent while another node has paused the run, is delivered after resume", async () => {
    let broken = true;
    const type = diamond(
      () => {
        if (broken) throw new Error("down");
      },
      (w) => w.waitForSignal("paid"),
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.status()).toBe("paused");
    await run.signal("paid", 5);
    await t.settle();
    expect(await run.status()).toBe("paused");
    broken = false;
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.filter((name) => name === "end")).toHaveLength(1);
  });

  test("the time limit of the run ends it, with all waiting nodes", async () => {
    const type = diamond(
      (w) => w.waitForSignal("never"),
      [{ wait: "2 days" }, noop],
      (it) => it.options({ timeout: "1 day" }),
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await run.get()).toMatchObject({ status: "failed", error: { name: "TimeoutError" } });
    expect(executed).toEqual(["begin", "left"]);
    await expectSound(t);
  });

  test("a worker's death between the pause of one node and the end of another loses neither", async () => {
    const w = await world();
    const type = diamond(boom, () => new Promise(() => {}));
    const isFixed = diamond(noop, noop);
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type);
    void worker.settle();
    await recorded(run, "run.paused left");
    await worker.kill();
    executed = [];
    const successor = await w.worker([isFixed]);
    await successor.settle();
    expect(await run.status()).toBe("paused");
    expect(executed).toEqual([]);
    await run.resume();
    await successor.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["end", "far", "left", "right"]);
    await expectSound(w);
  });

  test("a time limit applies to its own node only", async () => {
    const type = diamond([{ timeout: "20ms", onException: "skip" }, () => new Promise(() => {})]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toContain("left 1 failed timed_out");
    expect(await run.status()).toBe("completed");
  });
});

describe("flow control", () => {
  test("finish() ends the run with its output; nodes in flight are abandoned, and no other node starts", async () => {
    const aborted = gate();
    const type = diamond(
      (w) => w.finish("enough"),
      (w) => new Promise(() => w.abortSignal.addEventListener("abort", () => aborted.open())),
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await run.result()).toBe("enough");
    await aborted.opened;
    expect(executed).toEqual(["begin", "left", "right"]);
    await expectSound(t);
  });

  test("skip() continues with the successors", async () => {
    const type = diamond((w) => w.skip());
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toContain("left 1 skipped skipped_by_flow_control");
    expect(executed).toContain("far");
    expect(executed).toContain("end");
  });

  test("pause() pauses the run at the node; resume runs the node again", async () => {
    const type = diamond((w) => {
      if (w.attempt === 1) w.pause("somebody look");
    });
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: "somebody look" });
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.filter((name) => name === "left")).toHaveLength(2);
  });

  test("cancel() cancels the run", async () => {
    const type = diamond((w) => w.cancel("not wanted"));
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "not wanted" } });
    expect(executed).not.toContain("end");
  });

  test("reattempt() and suspend() run the node again while the others proceed", async () => {
    const type = diamond(
      (w) => {
        if (w.attempt < 3) w.reattempt({ wait: "1h" });
      },
      (w) => {
        if (w.attempt < 2) w.suspend({ wait: "30m" });
      },
    );
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.speedrun(run);
    expect((await attemptsOf(run)).toSorted()).toEqual([
      "begin 1 completed success",
      "end 1 completed success",
      "far 1 completed success",
      "left 1 completed reattempted",
      "left 2 completed reattempted",
      "left 3 completed success",
      "right 1 completed continued",
      "right 2 completed success",
    ]);
  });
});

describe("a resumable step beside tasks", () => {
  const items = Array.from({ length: 10 }, (_, index) => index);
  let seen: number[] = [];
  class Mixed extends Workflow {
    static {
      this.step("begin", () => {});
      this.resumableStep("loop", { maxIterations: 4 }, async (_w, iter) => {
        await iter.over(items, (n) => void seen.push(n));
      });
      this.task("side", { dependsOn: "begin" }, (w) => w.sleep("nap", "1h"));
      this.step("end", { alsoDependsOn: "side" }, () => {});
    }
  }
  beforeEach(() => {
    seen = [];
  });

  test("is interrupted and continued while the tasks proceed", async () => {
    const t = await start(Mixed);
    const run = await t.pawl.start(Mixed);
    await t.settle();
    expect(seen).toEqual(items);
    expect(await run.status()).toBe("waiting");
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual([
      "begin 1 completed success",
      "side 1 completed success",
      "loop 1 completed continued",
      "loop 2 completed continued",
      "loop 3 completed success",
      "end 1 completed success",
    ]);
  });

  test("continues from its cursor wherever its worker dies", async () => {
    const t = await start(Mixed);
    const repeats: number[] = [];
    const report = await t.crashTest(Mixed, undefined, {
      setup: () => {
        repeats.push(seen.length - new Set(seen).size);
        seen = [];
      },
    });
    expect(report.status).toBe("completed");
    expect(seen.length).toBeGreaterThanOrEqual(items.length);
    expect(Math.max(...repeats)).toBeLessThanOrEqual(1);
  });
});

describe("commands from outside", () => {
  const broken = () => {
    let isBroken = true;
    return { body: () => (isBroken ? boom({} as Any) : undefined), fix: () => (isBroken = false) };
  };

  test("reattempt(node) retries the failed node, and the run continues", async () => {
    const { body, fix } = broken();
    const type = diamond(body);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.status()).toBe("paused");
    fix();
    await run.reattempt("left");
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(await attemptsOf(run)).toContain("left 2 completed success");
    await expectSound(t);
  });

  test("reattempt(node) runs a waiting node at once", async () => {
    const type = diamond([{ wait: "7 days" }, noop]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await run.reattempt("left");
    await t.settle();
    expect(await run.status()).toBe("completed");
  });

  test("reattempt(node) is refused for a node that has completed, was never tried, or has a completed successor; nothing changes", async () => {
    const { body } = broken();
    const type = diamond([{ onException: "skip" }, body], boom);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await statesOf(run)).toEqual([
      "begin completed",
      "end pending",
      "far pending",
      "left failed",
      "right failed",
    ]);
    await refused(run, () => run.reattempt("begin"));
    await refused(run, () => run.reattempt("end"));
    expect(await errorOf(run.reattempt("nobody"))).toMatchObject({ code: "INVALID_INPUT" });
    await run.skip();
    await t.settle();
    await refused(run, () => run.reattempt("left"));
  });

  test("reattempt(node) of a skipped node is refused once a successor has completed", async () => {
    const type = diamond((w) => w.skip(), boom);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: 'Step "right" failed: boom' });
    await run.resume({ output: "by hand" });
    await t.settle();
    await refused(run, () => run.reattempt("left"));
    expect(await run.status()).toBe("completed");
  });

  test("reattempt(node) is refused while the node is being executed", async () => {
    const waiting = gate();
    const type = diamond(() => waiting.opened);
    const w = await world();
    const worker = await w.worker([type]);
    const run = await w.pawl.start(type);
    const settled = worker.settle();
    await until(async () => (await logOf(run)).includes("step.started left"));
    await refused(run, () => run.reattempt("left"));
    waiting.open();
    await settled;
    expect(await run.status()).toBe("completed");
    expect(executed.filter((name) => name === "left")).toHaveLength(1);
  });

  test("skip() skips the node at which the run is paused, and its successors run", async () => {
    const type = diamond(boom);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await run.skip();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(await attemptsOf(run)).toContain("left 2 skipped skipped_by_flow_control");
    expect(executed).toContain("far");
  });

  test("resume({ output }) completes the node with that output", async () => {
    const type = diamond(boom);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await run.resume({ output: 42 });
    await t.settle();
    expect(await run.status()).toBe("completed");
    const done = (await run.history()).find(({ type: kind, node }) => kind === "step.completed" && node === "left");
    expect(done?.data.output).toBe(42);
    expect((await run.nodes()).find(({ name }) => name === "left")?.ancestryHash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("resumeAt is refused, because it is for chains", async () => {
    const type = diamond(boom);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await refused(run, () => run.resumeAt("begin"));
  });

  test("a run that is paused while two nodes wait keeps both times", async () => {
    const type = diamond([{ wait: "2h" }, noop], [{ wait: "1h" }, noop]);
    const t = await start(type);
    const run = await t.pawl.start(type);
    await t.settle();
    await run.pause();
    await t.advance("90m");
    expect(executed).toEqual(["begin"]);
    await run.resume();
    await t.settle();
    expect(executed).toEqual(["begin", "right"]);
    await t.advance("30m");
    expect(await run.status()).toBe("completed");
  });
});

test("onCrash: pause pauses the run at the node that must not run twice; the other node is repeated", async () => {
  const type = diamond([{ onCrash: "pause" }, () => new Promise(() => {})], () => new Promise(() => {}));
  const isFixed = diamond([{ onCrash: "pause" }, noop], noop);
  const w = await world();
  const worker = await w.worker([type]);
  const run = await w.pawl.start(type);
  void worker.settle();
  await until(() => executed.includes("left") && executed.includes("right"));
  await worker.kill();
  executed = [];
  const successor = await w.worker([isFixed]);
  await successor.settle();
  expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining('"left"') });
  expect(executed).not.toContain("left");
  await run.resume({ output: "it had gone through" });
  await successor.settle();
  expect(await run.status()).toBe("completed");
  expect(executed.toSorted()).toEqual(["end", "far", "right"]);
  await expectSound(w);
});
