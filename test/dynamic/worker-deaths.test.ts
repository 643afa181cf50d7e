/**
 * Workers die, both those that execute nodes and those that coordinate. Nothing is lost, and nothing is recorded twice.
 */
import { job } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { gate, until } from "../support/waiting.js";
import { eventsOf, jobWorld, nodeRunsOf, nodesOf } from "./job-world.js";
import { wrongHashes } from "./recompute-hashes.js";

forMemoryAnd("postgres", (kind) => {
  test("a node whose worker died is executed again, as the same attempt", async () => {
    const started = gate();
    const attempts: number[] = [];
    const dies = job("Work", async (_args: void, { attempt }) => {
      attempts.push(attempt);
      started.open();
      await new Promise(() => {});
    });
    const works = job("Work", (_args: void, { attempt }) => {
      attempts.push(attempt);
      return "done";
    });
    const w = await jobWorld(kind);
    const first = await w.jobWorker(dies);
    const run = await w.pawl.build("work", (g) => g.node("only", { job: "Work" }));
    await w.worker1.settle();
    void first.settle();
    await started.opened;
    await first.kill();
    const second = await w.jobWorker(works);
    await w.runToEnd(second);
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    expect(attempts).toEqual([1, 1]);
    expect(await nodesOf(run)).toEqual(["only completed 1"]);
    expect((await eventsOf(run)).filter((line) => line.startsWith("node.dispatched"))).toHaveLength(1);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("the coordinating worker may die with nodes in flight on other workers: they proceed, and their results count", async () => {
    const proceed = gate();
    const started: string[] = [];
    const slow = job("Slow", async (_args: void, { node }) => {
      started.push(node.name);
      await proceed.opened;
      return node.name;
    });
    const w = await jobWorld(kind);
    const jobs = await w.jobWorker(slow);
    const run = await w.pawl.build("slow", (g) => {
      g.fanOut(["a", "b", "c"], { name: (name) => name, job: slow });
      g.node("end", { job: slow });
    });
    await w.worker1.settle();
    const working = jobs.settle();
    await until(() => started.length === 3);
    await w.worker1.kill();
    proceed.open();
    await working;
    await w.runToEnd(jobs);
    await run.result({ timeout: "100s" });
    expect(started.sort()).toEqual(["a", "b", "c", "end"]);
    expect(await nodeRunsOf(w, "Slow")).toHaveLength(4);
    const rows = await w.store.log(run.id, { after: 0, limit: 100 });
    expect(wrongHashes(rows, JSON.parse(await run.exportDag()))).toEqual({ wrong: [], checked: 4 });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("the run of a job that repeatedly crashes its worker is paused visibly, and its graph waits", async () => {
  const w = await jobWorld("memory");
  let started = gate();
  const poison = job("Poison", () => {
    started.open();
    return new Promise(() => {});
  });
  let victim = await w.jobWorker(poison);
  const run = await w.pawl.build("poison", (g) => g.node("only", { job: poison }));
  await w.worker1.settle();
  for (let deaths = 0; deaths < 5; deaths += 1) {
    void victim.settle();
    await started.opened;
    started = gate();
    await victim.kill();
    if (deaths < 4) victim = await w.jobWorker(poison);
  }
  const cured = await w.jobWorker(job("Poison", () => "cured"));
  await w.runToEnd(cured);
  const [attempt] = await nodeRunsOf(w, "Poison");
  expect(attempt?.status).toBe("paused");
  expect(await run.status()).toBe("waiting");
  await w.pawl.run(attempt?.id as string).resume();
  await w.runToEnd(cured);
  expect(await run.status()).toBe("completed");
});
