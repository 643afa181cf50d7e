/** The number of nodes of a graph that are executed at a time: never more than the limit, and no slot is ever lost. */
import { job, PermanentError } from "pawl";
import { expect, test } from "vitest";
import { gate, until } from "../support/waiting.js";
import { type AnyRun, jobWorld, nodesOf } from "./job-world.js";

/** A job whose executions end one by one when the test says so; it records how many ran at a time. */
function controlledJob(name: string) {
  const open = new Map<string, ReturnType<typeof gate<boolean>>>();
  const started: string[] = [];
  let maxInFlight = 0;
  const controlled = job(
    name,
    async (_args: void, { node }) => {
      const own = gate<boolean>();
      open.set(node.name, own);
      started.push(node.name);
      maxInFlight = Math.max(maxInFlight, open.size);
      const works = await own.opened;
      open.delete(node.name);
      if (!works) throw new PermanentError(`${node.name} fails`);
    },
    { retry: { attempts: 1 } },
  );
  return {
    controlled,
    started,
    maxInFlight: () => maxInFlight,
    inFlight: () => [...open.keys()].sort(),
    end: (node: string, works = true) => open.get(node)?.open(works),
  };
}

const completedIn = async (run: AnyRun) => (await run.nodes()).filter(({ state }) => state === "completed").length;
const inFlightIn = async (run: AnyRun) =>
  (await run.nodes()).filter(({ state }) => state === "executing").map(({ name }) => name);

test("a limit holds whichever node ends first, and across the turns of the coordinating worker", async () => {
  const j = controlledJob("Held");
  const w = await jobWorld("memory", j.controlled);
  const run = await w.pawl.build(
    "two",
    (g) => {
      for (const first of ["a", "b"]) {
        const before = g.node(first, { job: j.controlled, dependsOn: null });
        g.fanOut([1, 2, 3], { name: (n) => `${first}${n}`, job: j.controlled, dependsOn: before });
      }
    },
    { concurrency: 2 },
  );
  const settled = w.worker1.settle();
  await until(() => j.inFlight().length === 2);
  // The successors of the second node are running when those of the first could start.
  for (let ended = 0; ended < 8; ended += 1) {
    await until(() => j.inFlight().length >= Math.min(2, 8 - ended));
    j.end(["b", "a"][ended] ?? (j.inFlight().at(-1) as string));
    await until(async () => (await completedIn(run)) === ended + 1);
    expect((await inFlightIn(run)).length).toBeLessThanOrEqual(2);
  }
  await settled;
  expect(await run.status()).toBe("completed");
  expect(j.maxInFlight()).toBe(2);
  expect(j.started).toHaveLength(8);
});

test("a limit of one runs the nodes one after the other", async () => {
  let [running, maxInFlight] = [0, 0];
  const line = job("Line", async () => {
    maxInFlight = Math.max(maxInFlight, ++running);
    await Promise.resolve();
    running -= 1;
  });
  const w = await jobWorld("memory", line);
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
  const run = await w.pawl.build("line", (g) => g.fanOut(names, { name: (name) => name, job: line }), {
    concurrency: 1,
  });
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect(maxInFlight).toBe(1);
});

test("failures and retries release their slots", async () => {
  let [running, maxInFlight] = [0, 0];
  const flaky = job(
    "Flaky",
    async (args: { n: number }, { attempt }) => {
      maxInFlight = Math.max(maxInFlight, ++running);
      await Promise.resolve();
      running -= 1;
      if (args.n % 3 === 0 && attempt < 3) throw new Error("again");
      if (args.n % 5 === 0) throw new PermanentError("never");
    },
    { retry: { attempts: 4, initial: "1 minute", jitter: false } },
  );
  const w = await jobWorld("memory", flaky);
  const ns = Array.from({ length: 30 }, (_, n) => n + 1);
  const run = await w.pawl.build(
    "flaky",
    (g) => g.fanOut(ns, { name: (n) => `n${n}`, job: flaky, args: (n) => ({ n }) }),
    { concurrency: 3, onNodeFailure: "continue" },
  );
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  const states = (await run.nodes()).map(({ state }) => state);
  expect(states.filter((state) => state === "failed")).toHaveLength(6);
  expect(states.filter((state) => state === "completed")).toHaveLength(24);
  expect(maxInFlight).toBeLessThanOrEqual(3);
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("a pause releases the slots once the nodes in flight have ended, and deaths of workers lose no slot", async () => {
  const j = controlledJob("Held");
  const w = await jobWorld("memory", j.controlled);
  const names = ["a", "b", "c", "d", "e"];
  const run = await w.pawl.build("five", (g) => g.fanOut(names, { name: (name) => name, job: j.controlled }), {
    concurrency: 2,
  });
  const first = w.worker1.settle();
  await until(() => j.inFlight().length === 2);
  await run.pause();
  for (const name of j.inFlight()) j.end(name);
  await first;
  expect(await nodesOf(run)).toEqual(["a completed 1", "b completed 1", "c pending 0", "d pending 0", "e pending 0"]);
  await run.resume();
  void w.worker1.settle();
  await until(() => j.inFlight().length === 2);
  await w.worker1.kill();
  const second = controlledJob("Held");
  const other = await w.jobWorker(second.controlled);
  const settled = other.settle();
  await until(() => second.inFlight().length === 2);
  expect(second.inFlight()).toEqual(["c", "d"]);
  second.end("c");
  await until(() => second.inFlight().includes("e"));
  second.end("d");
  second.end("e");
  await settled;
  expect(await run.status()).toBe("completed");
  expect(second.maxInFlight()).toBe(2);
});

test("once a node has failed nothing new starts, even when a parallel node ends later", async () => {
  const j = controlledJob("Held");
  const w = await jobWorld("memory", j.controlled);
  const run = await w.pawl.build(
    "stop",
    (g) => g.fanOut(["a", "b", "c", "d"], { name: (name) => name, job: j.controlled }),
    {
      concurrency: 2,
    },
  );
  const settled = w.worker1.settle();
  await until(() => j.inFlight().length === 2);
  j.end("b", false);
  await until(async () => (await nodesOf(run)).includes("b failed 1"));
  j.end("a");
  await settled;
  expect(j.started).toEqual(["a", "b"]);
  expect(await run.status()).toBe("paused");
  expect(await nodesOf(run)).toEqual(["a completed 1", "b failed 1", "c pending 0", "d pending 0"]);
});

test("once a node has failed nothing new starts, even when another worker takes over the coordination", async () => {
  const [proceed, failed] = [gate(), gate()];
  const started: string[] = [];
  const mixed = job("Mixed", async (_args: void, { node }) => {
    started.push(node.name);
    if (node.name !== "z") await proceed.opened;
    else {
      failed.open();
      throw new PermanentError("z fails");
    }
  });
  const w = await jobWorld("memory");
  const jobs = await w.jobWorker(mixed);
  const run = await w.pawl.build("stop", (g) => {
    g.node("a", { job: mixed });
    g.node("after_a", { job: mixed });
    g.node("z", { job: mixed, dependsOn: null });
  });
  void w.worker1.settle();
  const working = jobs.settle();
  await failed.opened;
  await until(async () => (await nodesOf(run)).includes("z failed 1"));
  await w.worker1.kill();
  proceed.open();
  await working;
  await w.runToEnd(jobs);
  expect(started.sort()).toEqual(["a", "z"]);
  expect(await nodesOf(run)).toEqual(["a completed 1", "after_a pending 0", "z failed 1"]);
});
