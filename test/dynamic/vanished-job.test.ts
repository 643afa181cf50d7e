/** A job disappears after its nodes were dispatched: the run is paused with the reason, and every remedy works. */
import { job, Workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { type AnyRun, jobWorld, nodeRunsOf, nodesOf } from "./job-world.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

const recordingJob = (name: string) =>
  job(name, (_args: unknown, { node }) => void executed.push(`${node.name} by ${name}`));
const Gone = recordingJob("Gone");
const Here = recordingJob("Here");

class ClassWithJob extends Workflow {
  static {
    this.task("first", { job: "Gone" });
    this.task("beside", () => void executed.push("beside"));
    this.step("last", { dependsOn: ["first", "beside"] }, () => void executed.push("last"));
  }
}

const isPausedFor = async (run: AnyRun, node: string) => {
  const { status, pauseReason } = await run.get();
  const paused = (await run.history()).findLast(({ type }) => type === "run.paused");
  expect({ status, pauseReason }).toMatchObject({ status: "paused", pauseReason: expect.stringContaining('"Gone"') });
  expect(pauseReason).toContain(`"${node}"`);
  expect(paused?.data).toMatchObject({ error: { name: "MissingJobError", code: "MISSING_JOB" } });
};

forMemoryAnd("postgres", (kind) => {
  test("when no worker has the job any more, graphs and classes that wait for it are paused, and others are not", async () => {
    const w = await jobWorld(kind, Here);
    const coordinator = await w.worker([ClassWithJob], { jobs: [Here] });
    // The nodes are dispatched while the job has a worker, and that last worker takes none of them before it stops.
    await (await w.jobWorker(Gone)).kill();
    await w.pawl.pauseQueue("job:Gone");
    const last = await w.jobWorker(Gone);
    const other = await w.pawl.build("other", (g) => g.node("fine", { job: "Here" }));
    const graph = await w.pawl.build("graph", (g) => {
      g.node("first", { job: "Gone" });
      g.node("beside", { job: "Here", dependsOn: null });
      g.node("last", { job: "Here", dependsOn: ["first", "beside"] });
    });
    const classRun = await w.pawl.start(ClassWithJob);
    await w.settleAll();
    expect([await graph.status(), await classRun.status()]).toEqual(["waiting", "waiting"]);
    expect(await other.status()).toBe("completed");
    await last.kill();
    await w.pawl.resumeQueue("job:Gone");
    await coordinator.worker.checkVanishedJobs();
    await w.settleAll();
    await isPausedFor(graph, "first");
    await isPausedFor(classRun, "first");
    const before = (await graph.history()).length;
    await coordinator.worker.checkVanishedJobs();
    await w.settleAll();
    expect((await graph.history()).length).toBe(before);

    // The job comes back: the dispatched nodes are executed once, and the runs continue when they are resumed.
    await w.jobWorker(Gone);
    await w.settleAll();
    expect(executed.filter((line) => line === "first by Gone")).toHaveLength(2);
    await graph.resume();
    await classRun.resume();
    await w.settleAll();
    expect([await graph.status(), await classRun.status()]).toEqual(["completed", "completed"]);
    expect(executed.filter((line) => line === "first by Gone")).toHaveLength(2);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

const remedies: readonly [string, (run: AnyRun) => Promise<unknown>, string][] = [
  ["skip() skips the node", (run) => run.skip(), "first skipped 1"],
  ["resume({ output }) sets the output of the node", (run) => run.resume({ output: 5 }), "first completed 1"],
  [
    "importDag() with another job runs that job",
    async (run) => {
      await run.importDag((await run.exportDag()).replace("Gone", "Here"));
      await run.resume();
    },
    "first completed",
  ],
];

test.each(
  remedies.flatMap(([name, remedy, state]) =>
    (["graph", "class"] as const).map((style) => [name, style, remedy, state] as const),
  ),
)("%s (%s), and the run of the missing job is canceled", async (_name, style, remedy, first) => {
  const t = await testPawl({ workflows: [ClassWithJob], jobs: [Here, Gone], logger: silent });
  onTestFinished(() => t.close());
  await t.pawl.pauseQueue("job:Gone");
  await t.settle();
  const run: AnyRun =
    style === "class"
      ? await t.pawl.start(ClassWithJob)
      : await t.pawl.build("graph", (g) => {
          g.node("first", { job: "Gone" });
          g.node("last", { job: "Here" });
        });
  await t.settle();
  await t.deploy([ClassWithJob], [Here]);
  await t.pawl.resumeQueue("job:Gone");
  await t.advance("2 minutes");
  await isPausedFor(run, "first");
  await remedy(run);
  await t.settle();
  expect(await run.status()).toBe("completed");
  expect((await nodesOf(run))[0]).toContain(first);
  await t.deploy([ClassWithJob], [Here, Gone]);
  await t.settle();
  expect(executed.filter((line) => line === "first by Gone")).toEqual([]);
  expect((await nodeRunsOf(t, "Gone")).map(({ status }) => status)).toEqual(["canceled"]);
  expect((await t.pawl.verify()).differences).toEqual([]);
});

test("a run waits for a job that is missing for less than a minute", async () => {
  const t = await testPawl({ workflows: [ClassWithJob], jobs: [Here, Gone], logger: silent });
  onTestFinished(() => t.close());
  await t.pawl.pauseQueue("job:Gone");
  await t.settle();
  const run = await t.pawl.build("graph", (g) => g.node("first", { job: "Gone" }));
  await t.settle();
  await t.deploy([ClassWithJob], [Here]);
  await t.pawl.resumeQueue("job:Gone");
  await t.advance("30 seconds");
  expect(await run.status()).toBe("waiting");
  await t.deploy([ClassWithJob], [Here, Gone]);
  await t.advance("2 minutes");
  expect(await run.status()).toBe("completed");
});
