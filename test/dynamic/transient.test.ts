/**
 * Jobs that throw a TransientError: it does not use up attempts, the waits grow, and the log does not grow without
 * limit.
 */
import { job, TransientError, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { jobWorld, nodeRunsOf, nodesOf, startJobs } from "./job-world.js";

forMemoryAnd("postgres", (kind) => {
  test("a job that is postponed does not use up the attempts of its node", async () => {
    const attempts: number[] = [];
    const flaky = job(
      "Flaky",
      (_args: void, { attempt }) => {
        attempts.push(attempt);
        if (attempts.length <= 5) throw new TransientError("busy");
        if (attempts.length === 6) throw new Error("broken");
        if (attempts.length <= 9) throw new TransientError("busy again");
        return "done";
      },
      { retry: { attempts: 2 } },
    );
    const w = await jobWorld(kind, flaky);
    const run = await w.pawl.build("put off", (g) => g.node("a", { job: flaky }));
    await w.runToEnd();
    expect(await run.status()).toBe("completed");
    expect(attempts).toEqual([1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    expect(await nodesOf(run)).toEqual(["a completed 2"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a run that is postponed repeatedly waits longer each time, until it makes progress", async () => {
  const waits: number[] = [];
  const t = await startJobs(
    job(
      "Patient",
      async (_args: void, { ctx }) => {
        waits.push(t.clock.read());
        if (waits.length >= 6) await ctx.step("somewhere", () => {});
        if (waits.length < 9) throw new TransientError("later");
      },
      { retry: { initial: "1s", factor: 2, jitter: false, max: "1h" } },
    ),
  );
  const run = await t.pawl.build("patient", (g) => g.node("a", { job: "Patient" }));
  await t.speedrun(run);
  const between = waits.slice(1).map((at, index) => (at - (waits[index] as number)) / 1_000);
  expect(between).toEqual([1, 2, 4, 8, 16, 1, 2, 4]);
});

test("a job that is postponed forever is paused after a thousand times in a row, and resume starts a new count", {
  timeout: 300_000,
}, async () => {
  let calls = 0;
  const t = await startJobs(
    job("Never", () => {
      calls += 1;
      throw new TransientError("the other side is down", { retryAfter: "1s" });
    }),
  );
  await t.pawl.build("never", (g) => g.node("a", { job: "Never" }));
  await t.advance("1 hour");
  expect(calls).toBe(1_000);
  const [nodeRun] = await nodeRunsOf(t, "Never");
  const run = t.pawl.run(nodeRun?.id as string);
  expect(await run.get()).toMatchObject({
    status: "paused",
    pauseReason: expect.stringMatching(/postponed 1000 times in a row.*the other side is down/),
  });
  await run.resume();
  await t.advance("10s");
  expect(calls).toBeGreaterThan(1_005);
  expect(await run.status()).toBe("waiting");
});

test("a node whose job may fail without limit fails for good after a thousand attempts", {
  timeout: 300_000,
}, async () => {
  let calls = 0;
  const t = await startJobs(
    job(
      "Broken",
      () => {
        calls += 1;
        throw new Error("broken");
      },
      { retry: { attempts: Number.POSITIVE_INFINITY, initial: 1, factor: 1, jitter: false } },
    ),
  );
  const run = await t.pawl.build("broken", (g) => g.node("a", { job: "Broken" }));
  await t.advance("1 minute");
  expect(calls).toBe(1_000);
  expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining("broken") });
});

test("steps that are postponed forever pause their run, in a function and in a class", {
  timeout: 300_000,
}, async () => {
  const postpone = () => {
    throw new TransientError("not now", { retryAfter: "1s" });
  };
  const postponedFunction = workflow("put-off", async (ctx) => ctx.step("wait", postpone));
  class PostponedClass extends Workflow {
    static {
      this.step("wait", postpone);
    }
  }
  const t = await testPawl({ workflows: [postponedFunction, PostponedClass], logger: silent });
  onTestFinished(() => t.close());
  for (const run of [await t.pawl.start(postponedFunction), await t.pawl.start(PostponedClass)]) {
    await t.advance("1 hour");
    expect(await run.get()).toMatchObject({
      status: "paused",
      pauseReason: expect.stringMatching(/"wait" was postponed 1000 times in a row.*not now/),
    });
    expect((await run.executions()).filter(({ state }) => state === "failed")).toHaveLength(1_000);
  }
});

test("a step of a class that is postponed waits longer each time", async () => {
  const times: number[] = [];
  class Growing extends Workflow {
    static {
      this.step("wait", { retry: { initial: "1s", factor: 2, jitter: false } }, () => {
        times.push(t.clock.read());
        if (times.length < 5) throw new TransientError("later");
      });
    }
  }
  const t = await testPawl({ workflows: [Growing], logger: silent });
  onTestFinished(() => t.close());
  await t.speedrun(await t.pawl.start(Growing));
  expect(times.slice(1).map((at, index) => (at - (times[index] as number)) / 1_000)).toEqual([1, 2, 4, 8]);
});
