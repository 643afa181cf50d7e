/** The state of a graph for humans: its nodes in order, what it waits for, and why it does not advance. */
import { job, PermanentError } from "pawl";
import { expect, test } from "vitest";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";
import { idOf, jobWorld, nodesOf } from "./job-world.js";

test("a graph is pending, waits for its jobs, for a retry and for a person, and ends", async () => {
  const [started, proceed] = [gate(), gate()];
  const slow = job("Slow", async () => {
    started.open();
    await proceed.opened;
  });
  const behavior = { fails: true };
  const flaky = job(
    "Flaky",
    (_args: void, { attempt }) => {
      if (attempt === 1) throw new Error("not yet");
      if (behavior.fails) throw new PermanentError("never");
    },
    { retry: { attempts: 3, initial: "1h", jitter: false } },
  );
  const w = await jobWorld("memory", flaky);
  const jobs = await w.jobWorker(slow);
  const run = await w.pawl.build("seen", (g) => {
    g.node("slow", { job: slow });
    g.node("flaky", { job: flaky });
  });
  await w.worker1.settle();
  const working = jobs.settle();
  await started.opened;
  expect((await run.get()).waitingFor).toEqual([{ kind: "jobs", open: 1, jobs: ["Slow"] }]);
  expect(await run.explain()).toMatchObject({ because: "waiting", text: expect.stringContaining("Slow") });
  expect(await nodesOf(run)).toEqual(["slow executing 1", "flaky pending 0"]);

  proceed.open();
  await working;
  await w.worker1.settle();
  const id = await idOf(run, "flaky");
  expect((await run.get()).waitingFor).toEqual([{ kind: "retry", step: id, attempt: 2 }]);
  expect(await run.explain()).toMatchObject({
    because: "waiting",
    text: expect.stringMatching(/attempt 2 at node "flaky" at .*, because of: not yet/),
  });
  expect(await nodesOf(run)).toEqual(["slow completed 1", "flaky scheduled 2"]);

  await w.runToEnd();
  const explanation = await run.explain();
  expect(explanation).toMatchObject({ because: "paused", until: null });
  expect(explanation.text).toContain('Node "flaky" failed: never');
  expect((await run.nodes())[1]).toMatchObject({
    state: "failed",
    attempt: 2,
    error: { message: "never" },
    job: "Flaky",
  });

  behavior.fails = false;
  await run.resume();
  await w.runToEnd();
  expect(await run.explain()).toMatchObject({ because: "ended" });
  expect((await run.nodes()).map(({ kind, after, state }) => [kind, after, state])).toEqual([
    ["job", [], "completed"],
    ["job", ["slow"], "completed"],
  ]);
  expect((await run.get()).waitingFor).toEqual([]);
  expect((await w.pawl.metrics("seen")).workers.map(({ graphs }) => graphs)).toEqual([true, true]);
});

test("a graph without a worker for its jobs says that it needs one", async () => {
  const { pawl } = await world();
  const run = await pawl.build("alone", (g) => g.node("a", { job: "Any" }));
  expect(await run.explain()).toMatchObject({
    because: "no_worker",
    text: expect.stringContaining("worker({ jobs })"),
  });
  expect((await run.get()).explanation).toContain("no live worker");
});

test("a node whose worker has died is explained by the run of its attempt", async () => {
  const w = await jobWorld("memory");
  const deadWorker = await w.jobWorker(job("Gone", () => new Promise(() => {})));
  const run = await w.pawl.build("gone", (g) => g.node("a", { job: "Gone" }));
  await w.worker1.settle();
  await deadWorker.kill();
  expect(await run.explain()).toMatchObject({ because: "waiting", text: expect.stringContaining("Gone") });
  const { runs } = await w.pawl.runs({ workflow: "job:Gone" });
  await until(async () => (await w.pawl.run(runs[0]?.id as string).explain()).because === "no_worker");
});

test("timeline, executions and progress work as for any run, with the names of the nodes", async () => {
  const steps = job("Steps", (_args: void, { progress }) => progress(3, 10, "on the way"));
  const w = await jobWorld("memory", steps);
  const run = await w.pawl.build("seen", (g) => g.node("a", { job: steps }));
  await w.runToEnd();
  expect(await run.timeline()).toMatchObject([{ step: "a", attempt: 1 }]);
  const [execution] = await run.executions();
  expect(execution).toMatchObject({ attempt: 1, state: "completed", outcome: "success", continuesFrom: null });
  const id = await idOf(run, "a");
  expect(execution).toMatchObject({ step: "a", node: id, id: `${run.id}:${id}:1` });
});

test("a node that an imported graph has renamed is shown under its new name", async () => {
  const failing = job("Failing", () => Promise.reject(new PermanentError("never")));
  const w = await jobWorld("memory", failing);
  const run = await w.pawl.build("renamed", (g) => g.node("before", { job: failing }));
  await w.runToEnd();
  const id = await idOf(run, "before");
  const dag = JSON.parse(await run.exportDag());
  dag.nodes[id].name = "after";
  await run.importDag(dag);
  expect(await run.executions()).toMatchObject([{ step: "after", node: id, state: "failed" }]);
  expect(await nodesOf(run)).toEqual(["after failed 1"]);
});
