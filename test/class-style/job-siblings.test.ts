/** Parallel steps when one of them stops the run: what happens to the others. */
import { job, PauseError, PermanentError, TransientError, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { attemptsOf, expectSound, logOf } from "../support/run-checks.js";
import { databaseFor, keepWorking, silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

let executed: string[] = [];
let broken = new Set<string>();
beforeEach(() => {
  executed = [];
  broken = new Set(["x", "y"]);
});

const attempt = (name: string) => {
  executed.push(name);
  if (broken.has(name)) throw new Error(`${name} is broken`);
};
const work = job("Work", (name: string) => attempt(name));

class Bodies extends Workflow {
  static {
    this.task("x", () => attempt("x"));
    this.task("y", () => attempt("y"));
    this.step("last", { dependsOn: ["x", "y"] }, () => void executed.push("last"));
  }
}

class Jobs extends Workflow {
  static {
    this.task("x", { job: work, args: "x" });
    this.task("y", { job: work, args: "y" });
    this.step("last", { dependsOn: ["x", "y"] }, () => void executed.push("last"));
  }
}

forMemoryAnd("mysql", (kind) => {
  const database = databaseFor(kind);

  test.each([
    ["bodies", Bodies],
    ["jobs", Jobs],
  ] as const)("reattempt of one failed node retries that node and no other (%s)", async (_what, type) => {
    const w = await database.world();
    const worker = await w.worker([type], { jobs: [work] });
    const run = await w.pawl.start(type);
    await worker.settle();
    expect(await run.status()).toBe("paused");
    expect(executed.toSorted()).toEqual(["x", "y"]);

    broken.delete("x");
    await run.reattempt("x");
    await worker.settle();
    expect(executed.toSorted()).toEqual(["x", "x", "y"]);
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining("y is broken") });
    expect((await run.nodes()).map(({ name, state, attempt }) => `${name} ${attempt} ${state}`)).toEqual([
      "x 2 completed",
      "y 1 failed",
      "last 0 pending",
    ]);

    broken.delete("y");
    await run.reattempt("y");
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["last", "x", "x", "y", "y"]);
    await expectSound(w);
  });

  test("a job that ends while its run is paused is recorded as failed or completed, and nothing new starts", async () => {
    const w = await database.world();
    const ends = { slow: gate(), good: gate() };
    let started = 0;
    const waiting = job("Waiting", async (name: "slow" | "good") => {
      started += 1;
      await ends[name].opened;
      if (name === "slow") throw new PermanentError("slow is broken");
      return "good";
    });
    class Three extends Workflow {
      static {
        this.task("x", { job: work, args: "x" });
        this.task("slow", { job: waiting, args: "slow", onException: [{ on: PermanentError, action: "pause" }] });
        this.task("good", { job: waiting, args: "good" });
        this.step("after_good", { dependsOn: "good" }, () => void executed.push("after_good"));
      }
    }
    const stateOf = async (name: string) => (await run.nodes()).find((node) => node.name === name)?.state;
    const worker = await w.worker([Three]);
    const jobWorker = await w.worker([], { jobs: [work, waiting] });
    const run = await w.pawl.start(Three);
    keepWorking(worker, jobWorker);
    await until(async () => started === 2 && (await run.status()) === "paused");
    // The log records the start of both a moment later.
    await until(async () => (await stateOf("slow")) === "executing" && (await stateOf("good")) === "executing");
    expect(await stateOf("x")).toBe("failed");
    ends.slow.open();
    ends.good.open();
    await until(async () => (await stateOf("slow")) !== "executing" && (await stateOf("good")) !== "executing");
    expect([await stateOf("slow"), await stateOf("good")]).toEqual(["failed", "completed"]);
    await until(async () => (await run.status()) === "paused");
    expect(executed).toEqual(["x"]);

    broken.clear();
    ends.slow = gate();
    await until(async () => (await run.get()).pauseReason?.includes("slow is broken") === true);
    await run.skip();
    await until(async () => (await run.get()).pauseReason?.includes("x is broken") === true);
    await run.resume();
    await until(async () => (await run.status()) === "completed");
    expect(executed.toSorted()).toEqual(["after_good", "x", "x"]);
    await expectSound(w);
  });

  test("finish() beside a step that is executing cancels that step, in executions() and in nodes()", async () => {
    const w = await database.world();
    const started = gate();
    const aborted = gate();
    const endless = job("Endless", (_args: void, { abortSignal }) => {
      started.open();
      return new Promise<void>((resolve) =>
        abortSignal.addEventListener("abort", () => {
          aborted.open();
          resolve();
        }),
      );
    });
    class Finishes extends Workflow {
      static {
        this.task("forever", { job: endless });
        this.task("enough", async (w) => {
          await w.waitForSignal("enough");
          w.finish();
        });
      }
    }
    const worker = await w.worker([Finishes]);
    const jobWorker = await w.worker([], { jobs: [endless] });
    const run = await w.pawl.start(Finishes);
    await worker.settle();
    const jobWork = jobWorker.settle();
    await started.opened;
    await run.signal("enough");
    await worker.settle();
    await aborted.opened;
    await jobWork;
    expect(await run.status()).toBe("completed");
    expect(await attemptsOf(run)).toContain("forever 1 canceled canceled_by_flow_control");
    expect((await run.nodes()).find(({ name }) => name === "forever")).toMatchObject({ state: "canceled" });
    await expectSound(w);
  });
});

test("skip() and resume({ output }) apply to the node at which the run is paused; another failed node stays failed", async () => {
  const t = await testPawl({ workflows: [Bodies], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(Bodies);
  await t.settle();
  await run.skip();
  await t.settle();
  expect(executed).toHaveLength(2);
  expect(await run.status()).toBe("paused");
  await run.resume({ output: 1 });
  await t.settle();
  expect(await run.status()).toBe("completed");
  expect(executed.slice(2)).toEqual(["last"]);
});

test("while a reattempted node waits for its retry, the run is not paused because of the other failed node", async () => {
  class Slow extends Workflow {
    static {
      this.task("x", () => {
        attempt("x");
        if (executed.filter((one) => one === "x").length === 2)
          throw new TransientError("later", { retryAfter: "1 hour" });
      });
      this.task("y", () => attempt("y"));
    }
  }
  const t = await testPawl({ workflows: [Slow], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(Slow);
  await t.settle();
  broken.delete("x");
  await run.reattempt("x");
  await t.settle();
  expect(await run.get()).toMatchObject({ status: "waiting", waitingFor: [{ kind: "retry", step: "x" }] });
  await t.advance("1 hour");
  expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining("y is broken") });
  expect(executed.toSorted()).toEqual(["x", "x", "x", "y"]);
  await run.resume();
  broken.clear();
  await t.settle();
  expect(await run.status()).toBe("completed");
});

test("steps of a function that paused their run together are released one by one, too", async () => {
  const two = workflow("two-at-once", { retry: { attempts: 1 } }, async (ctx) => {
    const pausing = (name: string) =>
      ctx.step(name, () => {
        executed.push(name);
        if (broken.has(name)) throw new PauseError(`${name} is broken`);
      });
    await Promise.all([pausing("x"), pausing("y")]);
  });
  const t = await testPawl({ workflows: [two], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(two);
  await t.settle();
  await run.skip();
  await t.settle();
  expect(await run.status()).toBe("paused");
  expect(executed).toEqual(["x", "y"]);
  broken.clear();
  await run.resume();
  await t.settle();
  expect(await run.status()).toBe("completed");
  expect(executed).toHaveLength(3);
  expect(await logOf(run)).toContain("step.skipped y");
});
