/** A whole graph is paused or canceled while its nodes are in flight on other workers. */
import { job, RunCanceledError } from "pawl";
import { expect, test } from "vitest";
import type { StoreKind } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { errorOf, gate, until } from "../support/waiting.js";
import { jobWorld, nodeRunsOf, nodesOf } from "./job-world.js";

/** Starts a graph with two nodes in flight on a worker that does not coordinate, and two more nodes after them. */
async function startTwoInFlight(kind: StoreKind) {
  const proceed = gate();
  const started: string[] = [];
  const aborted: string[] = [];
  const slow = job("Slow", async (_args: void, { node, abortSignal }) => {
    started.push(node.name);
    // Each node waits separately, so that aborting one does not release the other.
    const wasAborted = new Promise<void>((resolve) => abortSignal.addEventListener("abort", () => resolve()));
    await Promise.race([proceed.opened, wasAborted.then(() => aborted.push(node.name))]);
  });
  const w = await jobWorld(kind);
  const jobs = await w.jobWorker(slow);
  const run = await w.pawl.build("slow", (g) => {
    g.fanOut(["a", "b"], { name: (name) => name, job: slow });
    g.fanOut(["c", "d"], { name: (name) => name, job: slow });
  });
  await w.worker1.settle();
  const working = jobs.settle();
  await until(() => started.length === 2);
  const runToEnd = async () => {
    await working;
    await w.settleAll();
  };
  return { w, run, proceed, started, aborted, runToEnd };
}

forMemoryAnd("sqlite", (kind) => {
  test("a pause lets nodes in flight finish and starts nothing; when the graph is resumed, the rest runs", async () => {
    const { w, run, proceed, started, runToEnd } = await startTwoInFlight(kind);
    await run.pause("lunch");
    proceed.open();
    await runToEnd();
    expect(started.sort()).toEqual(["a", "b"]);
    expect(await run.status()).toBe("paused");
    expect(await nodesOf(run)).toEqual(["a completed 1", "b completed 1", "c pending 0", "d pending 0"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
    await run.resume();
    await runToEnd();
    expect(await run.status()).toBe("completed");
    expect(started.sort()).toEqual(["a", "b", "c", "d"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("cancel cancels the nodes in flight, aborts them, and nothing starts any more", async () => {
    const { w, run, started, aborted, runToEnd } = await startTwoInFlight(kind);
    await run.cancel("changed our mind");
    await runToEnd();
    const error = await errorOf(run.result({ timeout: "100s" }));
    expect(error).toBeInstanceOf(RunCanceledError);
    expect(error.reason).toBe("changed our mind");
    expect(aborted.sort()).toEqual(["a", "b"]);
    expect(started.sort()).toEqual(["a", "b"]);
    expect((await nodeRunsOf(w, "Slow")).map(({ status }) => status)).toEqual(["canceled", "canceled"]);
    expect(await nodesOf(run)).toEqual(["a canceled 1", "b canceled 1", "c pending 0", "d pending 0"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a pause followed at once by a resume changes nothing", async () => {
  const { run, proceed, started, runToEnd } = await startTwoInFlight("memory");
  for (let times = 0; times < 3; times += 1) {
    await run.pause();
    await run.resume();
  }
  proceed.open();
  await runToEnd();
  expect(await run.status()).toBe("completed");
  expect(started.sort()).toEqual(["a", "b", "c", "d"]);
});

test("a graph that is paused with nodes in flight can be canceled", async () => {
  const { w, run, runToEnd } = await startTwoInFlight("memory");
  await run.pause();
  await run.cancel();
  await runToEnd();
  expect(await run.status()).toBe("canceled");
  expect((await nodeRunsOf(w, "Slow")).map(({ status }) => status)).toEqual(["canceled", "canceled"]);
});

test("a graph that only waits for a retry is canceled at once", async () => {
  const flaky = job("Flaky", () => Promise.reject(new Error("again")), { retry: { attempts: 9, initial: "1 day" } });
  const w = await jobWorld("memory", flaky);
  const run = await w.pawl.build("flaky", (g) => g.node("a", { job: flaky }));
  await w.worker1.settle();
  await run.cancel();
  expect(await run.status()).toBe("canceled");
  expect((await run.executions()).map(({ attempt, state }) => `${attempt} ${state}`)).toEqual([
    "1 failed",
    "2 canceled",
  ]);
  await w.runToEnd();
  expect(await nodeRunsOf(w, "Flaky")).toHaveLength(1);
});

test("a graph of many nodes that is canceled before any has started leaves nothing behind", async () => {
  let started = 0;
  const count = job("Count", () => {
    started += 1;
  });
  const w = await jobWorld("memory");
  const jobs = await w.jobWorker(count);
  const names = Array.from({ length: 1_200 }, (_, n) => `n${n}`);
  const run = await w.pawl.build("many", (g) => g.fanOut(names, { name: (name) => name, job: count }), { delay: 1 });
  await run.cancel();
  w.clock.moveTo(w.clock.read() + 10);
  await w.runToEnd();
  await w.runToEnd(jobs);
  expect(started).toBe(0);
  expect((await w.pawl.runs({ active: true })).runs).toEqual([]);
});
