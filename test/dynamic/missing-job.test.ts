/** A node whose job no worker has: the run is paused and says what is missing, and there are two remedies. */
import { GraphError, job } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { errorOf } from "../support/waiting.js";
import { type AnyRun, eventsOf, idOf, jobWorld, nodesOf, startJobs } from "./job-world.js";

const executed: string[] = [];
const recordingJob = (name: string) =>
  job(name, (_args: unknown, { node }) => {
    executed.push(`${node.name} by ${name}`);
  });

forMemoryAnd("mysql", (kind) => {
  test("a graph whose job is missing is exported, edited, imported, resumed, and completes", async () => {
    executed.length = 0;
    const w = await jobWorld(kind, recordingJob("Here"), recordingJob("New"));
    const run = await w.pawl.build("repair", (g) => {
      g.node("first", { job: "Here" });
      g.node("second", { job: "Vanished", args: { n: 1 } });
      g.node("third", { job: "Here" });
    });
    const frozenAt = w.clock.now.toISOString();
    await w.runToEnd();
    expect(await run.status()).toBe("paused");
    const { text } = await run.explain();
    for (const part of ["second", run.id, "Vanished", frozenAt, "importDag"]) expect(text).toContain(part);
    const paused = (await run.history()).find(({ type }) => type === "run.paused");
    expect(paused?.data).toMatchObject({ error: { name: "MissingJobError", code: "MISSING_JOB" } });
    await run.importDag((await run.exportDag()).replace("Vanished", "New"));
    expect(await run.status()).toBe("paused");
    await run.resume();
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    expect(executed).toEqual(["first by Here", "second by New", "third by Here"]);
    expect(await eventsOf(run)).toContain("dag.imported");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a job that is restored by a deploy is executed as soon as the run is resumed", async () => {
  executed.length = 0;
  const t = await startJobs(recordingJob("Here"));
  const run = await t.pawl.build("restore", (g) => {
    g.node("a", { job: "Gone" });
    g.node("b", { job: "Here", dependsOn: null });
    g.node("c", { job: "Here", dependsOn: ["a", "b"] });
  });
  await t.settle();
  expect(await run.status()).toBe("paused");
  await run.resume();
  await t.settle();
  expect(await run.status()).toBe("paused");
  await t.deploy([], [recordingJob("Here"), recordingJob("Gone")]);
  expect(await run.status()).toBe("paused");
  await run.resume();
  await t.speedrun(run);
  expect(executed.sort()).toEqual(["a by Gone", "b by Here", "c by Here"]);
});

test("a job that only another live worker has is not missing", async () => {
  executed.length = 0;
  const w = await jobWorld("memory", recordingJob("Here"));
  await w.jobWorker(recordingJob("Elsewhere"));
  const run = await w.pawl.build("elsewhere", (g) => {
    g.node("a", { job: "Elsewhere" });
    g.node("b", { job: "Here" });
  });
  await w.settleAll();
  expect(await run.status()).toBe("completed");
  expect(executed).toEqual(["a by Elsewhere", "b by Here"]);
});

test("a job of a worker that has died is missing", async () => {
  const w = await jobWorld("memory", recordingJob("Here"));
  const other = await w.jobWorker(recordingJob("Elsewhere"));
  await other.kill();
  const run = await w.pawl.build("elsewhere", (g) => g.node("a", { job: "Elsewhere" }));
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
});

test.each([
  ["skip() skips the node whose job is missing, and no other", (run: AnyRun) => run.skip(), "missing skipped 1"],
  [
    "resume({ output }) sets the output of the node whose job is missing",
    (run: AnyRun) => run.resume({ output: 5 }),
    "missing completed 1",
  ],
])("%s", async (_name, repair, missing) => {
  const flaky = job("Flaky", (_args: void, { attempt }) => {
    if (attempt === 1) throw new Error("once more");
  });
  const w = await jobWorld("memory", flaky);
  const run = await w.pawl.build("two", (g) => {
    g.node("flaky", { job: flaky });
    g.node("missing", { job: "Gone", dependsOn: null });
  });
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["flaky scheduled 2", "missing pending 0"]);
  const paused = (await run.history()).find(({ type }) => type === "run.paused");
  expect(paused?.node).toBe(await idOf(run, "missing"));
  await repair(run);
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  expect(await nodesOf(run)).toEqual(["flaky completed 2", missing]);
  expect((await w.pawl.verify()).differences).toEqual([]);
});

test("a graph that names a job which was never registered cannot be imported", async () => {
  const w = await jobWorld("memory", recordingJob("Here"));
  const run = await w.pawl.build("typo", (g) => g.node("a", { job: "Gone" }));
  await w.runToEnd();
  const before = await run.history();
  const error = await errorOf(run.importDag((await run.exportDag()).replace("Gone", "Heer")));
  expect(error).toBeInstanceOf(GraphError);
  expect(error).toMatchObject({ nodes: ["a"] });
  expect(error.message).toContain('"Heer"');
  expect(await run.history()).toEqual(before);
});
