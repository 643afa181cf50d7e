/** What happens to a graph when its jobs fail, and what an operator can do. */
import { InvalidStateError, job, PermanentError, TransientError } from "pawl";
import { expect, test } from "vitest";
import { errorOf, gate, until } from "../support/waiting.js";
import { eventsOf, jobWorld, nodeRunsOf, nodesOf } from "./job-world.js";

const fine = job("Fine", (_args: void, { node }) => node.name);

/** Two branches: one fails, the other has a second node. */
async function twoBranches(onNodeFailure: "stop" | "continue") {
  const behavior = { fails: true };
  const broken = job("Broken", () => {
    if (behavior.fails) throw new PermanentError("broken");
  });
  const w = await jobWorld("memory", fine, broken);
  const run = await w.pawl.build(
    "branches",
    (g) => {
      g.node("bad", { job: broken });
      g.node("after_bad", { job: fine });
      g.node("good", { job: fine, dependsOn: null });
      g.node("after_good", { job: fine });
      g.node("end", { job: fine, dependsOn: ["after_bad", "after_good"] });
    },
    { onNodeFailure },
  );
  await w.runToEnd();
  return { w, run, behavior };
}

test("stop: nothing new starts, and the run is paused with the reason", async () => {
  const { w, run } = await twoBranches("stop");
  const info = await run.get();
  expect(info.status).toBe("paused");
  expect((await run.explain()).text).toContain('Node "bad" failed: broken');
  expect(await nodesOf(run)).toContain("end pending 0");
  expect(await nodesOf(run)).toContain("bad failed 1");
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("continue: all nodes that do not depend on the failed one run first", async () => {
  const { w, run, behavior } = await twoBranches("continue");
  expect(await run.status()).toBe("paused");
  const half = ["bad failed 1", "after_bad pending 0", "good completed 1", "after_good completed 1", "end pending 0"];
  expect(await nodesOf(run)).toEqual(half);
  behavior.fails = false;
  await run.resume();
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect((await nodesOf(run))[0]).toBe("bad completed 2");
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("resume retries all failed nodes, reattempt retries one of them", async () => {
  const fails = new Set(["a", "b", "c"]);
  const broken = job("Broken", (_args: void, { node }) => {
    if (fails.has(node.name)) throw new PermanentError("broken");
  });
  const w = await jobWorld("memory", broken);
  const run = await w.pawl.build("three", (g) => g.fanOut(["a", "b", "c"], { name: (n) => n, job: broken }), {
    onNodeFailure: "continue",
  });
  await w.runToEnd();
  expect((await run.explain()).text).toMatch(/Node "[abc]" failed: broken\. So did "[abc]", "[abc]"\. Repair/);
  await run.reattempt("b");
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["a failed 1", "b failed 2", "c failed 1"]);
  fails.clear();
  await run.resume();
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["a completed 2", "b completed 3", "c completed 2"]);
  expect(await run.status()).toBe("completed");
});

test("skip skips the failed node, resume({ output }) sets its output; both are recorded", async () => {
  for (const way of ["skip", "output"] as const) {
    const { w, run } = await twoBranches("continue");
    if (way === "skip") await run.skip();
    else await run.resume({ output: "by hand" });
    await w.runToEnd();
    expect(await run.status()).toBe("completed");
    expect((await nodesOf(run))[0]).toBe(way === "skip" ? "bad skipped 2" : "bad completed 2");
    const bad = (await run.nodes())[0];
    expect(bad?.ancestryHash === null).toBe(way === "skip");
    expect((await w.pawl.verify()).differences).toEqual([]);
  }
});

test("a job is retried by its own policy, and the failure and the time of each attempt are recorded", async () => {
  const at: number[] = [];
  const flaky = job(
    "Flaky",
    (_args: void, { attempt }) => {
      at.push(w.clock.read());
      if (attempt < 4) throw new Error(`no ${attempt}`);
      return attempt;
    },
    { retry: { attempts: 5, initial: "1 minute", factor: 2, jitter: false } },
  );
  const w = await jobWorld("memory", flaky);
  const run = await w.pawl.build("flaky", (g) => g.node("only", { job: flaky }));
  await w.worker1.settle();
  expect(await nodesOf(run)).toEqual(["only scheduled 2"]);
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect(at.slice(1).map((instant, n) => instant - (at[n] as number))).toEqual([60_000, 120_000, 240_000]);
  expect((await run.executions()).map(({ attempt, outcome, error }) => [attempt, outcome, error?.message])).toEqual([
    [1, "reattempted_by_exception", "no 1"],
    [2, "reattempted_by_exception", "no 2"],
    [3, "reattempted_by_exception", "no 3"],
    [4, "success", undefined],
  ]);
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("a job whose retries are used up fails, and `retryIf` is called with the error", async () => {
  const retryIfCalls: string[] = [];
  const broken = job("Broken", () => Promise.reject(new RangeError("no")), {
    retry: {
      attempts: 3,
      initial: 1,
      jitter: false,
      retryIf: (error: unknown) => {
        retryIfCalls.push((error as Error).name);
        return retryIfCalls.length < 2;
      },
    },
  });
  const w = await jobWorld("memory", broken);
  const run = await w.pawl.build("broken", (g) => g.node("only", { job: broken }));
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  expect(await nodesOf(run)).toEqual(["only failed 2"]);
  expect(retryIfCalls).toEqual(["RangeError", "RangeError"]);
});

test("`retryIf` is called with the very error that was thrown", async () => {
  class RateLimit extends Error {}
  const limited = job(
    "Limited",
    (_args: void, { attempt }) => {
      if (attempt === 1) throw new RateLimit("slow down");
    },
    { retry: { attempts: 2, initial: 1, retryIf: (error) => error instanceof RateLimit } },
  );
  const w = await jobWorld("memory", limited);
  const run = await w.pawl.build("limited", (g) => g.node("only", { job: limited }));
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["only completed 2"]);
});

test("a PermanentError is not retried; a TransientError is retried later and uses up no attempt", async () => {
  let calls = 0;
  const permanent = job("Permanent", () => Promise.reject(new PermanentError("never")));
  const transient = job(
    "Transient",
    (_args: void, { attempt }) => {
      calls += 1;
      if (calls <= 5) throw new TransientError("busy", { retryAfter: "1h" });
      return attempt;
    },
    { retry: { attempts: 2 } },
  );
  const w = await jobWorld("memory", permanent, transient);
  const before = w.clock.read();
  const run = await w.pawl.build(
    "both",
    (g) => {
      g.node("permanent", { job: permanent });
      g.node("transient", { job: transient, dependsOn: null });
    },
    { onNodeFailure: "continue" },
  );
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["permanent failed 1", "transient completed 1"]);
  expect(calls).toBe(6);
  expect(w.clock.read() - before).toBeGreaterThanOrEqual(5 * 3_600_000);
});

test("an attempt that exceeds its time limit has failed and is retried", async () => {
  const slow = job(
    "Slow",
    async (_args: void, { attempt, ctx }) => {
      if (attempt > 1) return "in time";
      await ctx.sleep("long", "1 day");
      return "too late";
    },
    { timeout: "1 minute", retry: { attempts: 2, initial: 1, jitter: false } },
  );
  const w = await jobWorld("memory", slow);
  const run = await w.pawl.build("slow", (g) => g.node("only", { job: slow }));
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  const [first, second] = await run.executions();
  expect(first?.error).toMatchObject({ name: "TimeoutError" });
  expect(second).toMatchObject({ attempt: 2, state: "completed" });
});

test("an output that cannot be stored is a failure like any other, and is not retried", async () => {
  const unfit = job("Unfit", () => ({ f: () => {} }));
  const huge = job("Huge", () => "x".repeat(1_100_000));
  const w = await jobWorld("memory", unfit, huge);
  const run = await w.pawl.build(
    "unfit",
    (g) => {
      g.node("unfit", { job: unfit });
      g.node("huge", { job: huge, dependsOn: null });
    },
    { onNodeFailure: "continue" },
  );
  await w.runToEnd();
  expect((await run.nodes()).map(({ attempt, state, error }) => [attempt, state, error?.name])).toEqual([
    [1, "failed", "SerializationError"],
    [1, "failed", "PayloadTooLargeError"],
  ]);
});

test("whatever value a job throws, the failure has a message", async () => {
  const odd = job("Odd", (args: { n: number }) => Promise.reject([undefined, null, "text", 5, { a: 1 }][args.n]), {
    retry: { attempts: 1 },
  });
  const w = await jobWorld("memory", odd);
  const run = await w.pawl.build(
    "odd",
    (g) => g.fanOut([0, 1, 2, 3, 4], { name: (n) => `n${n}`, job: odd, args: (n) => ({ n }) }),
    { onNodeFailure: "continue" },
  );
  await w.runToEnd();
  expect((await run.nodes()).every(({ state, error }) => state === "failed" && error instanceof Error)).toBe(true);
});

test("canceling the run of one attempt fails its node and pauses the graph", async () => {
  const started = gate();
  const waits = job("Waits", async (_args: void, { attempt, ctx }) => {
    started.open();
    if (attempt === 1) await ctx.waitForSignal("never");
  });
  const w = await jobWorld("memory", waits);
  const run = await w.pawl.build("waits", (g) => g.node("only", { job: waits }));
  await w.worker1.settle();
  const [attempt] = await nodeRunsOf(w, "Waits");
  await w.pawl.run(attempt?.id as string).cancel("by mistake");
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  expect((await run.nodes())[0]).toMatchObject({ state: "failed", error: { message: "by mistake" } });
  await run.reattempt("only");
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("while nodes are in flight, skip and resume({ output }) are refused", async () => {
  const [started, proceed] = [gate(), gate()];
  const slow = job("Slow", async () => {
    started.open();
    await proceed.opened;
    return "its own";
  });
  const w = await jobWorld("memory");
  const jobs = await w.jobWorker(slow);
  const run = await w.pawl.build("slow", (g) => g.node("only", { job: slow }));
  await w.worker1.settle();
  const working = jobs.settle();
  await started.opened;
  await until(async () => (await run.status()) === "waiting");
  expect(await errorOf(run.skip())).toBeInstanceOf(InvalidStateError);
  await run.pause();
  expect(await errorOf(run.skip())).toBeInstanceOf(InvalidStateError);
  expect(await errorOf(run.resume({ output: "another" }))).toBeInstanceOf(InvalidStateError);
  proceed.open();
  await working;
  await w.runToEnd();
  await run.resume();
  await w.runToEnd();
  expect(await eventsOf(run)).toContain("step.completed only 1");
  expect((await run.history()).find(({ type }) => type === "step.completed")?.data).toMatchObject({
    output: "its own",
  });
});

test("a skipped node is not retried once a node after it has started", async () => {
  const [started, proceed] = [gate(), gate()];
  const broken = job("Broken", () => Promise.reject(new PermanentError("no")));
  const slow = job("Slow", async () => {
    started.open();
    await proceed.opened;
  });
  const w = await jobWorld("memory", broken);
  const jobs = await w.jobWorker(slow);
  const run = await w.pawl.build("order", (g) => {
    g.node("first", { job: broken });
    g.node("second", { job: slow });
  });
  await w.runToEnd();
  await run.skip();
  await w.worker1.settle();
  const working = jobs.settle();
  await started.opened;
  expect(await errorOf(run.reattempt("first"))).toBeInstanceOf(InvalidStateError);
  proceed.open();
  await working;
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
});
