/**
 * Repair of a paused graph: which edited graphs a run accepts, which it refuses, and that a refusal changes nothing.
 */
import { GraphError, InvalidInputError, InvalidStateError, job, PermanentError } from "pawl";
import { describe, expect, test } from "vitest";
import { errorOf, gate } from "../support/waiting.js";
import { eventsOf, jobWorld, nodesOf } from "./job-world.js";
import { wrongHashes } from "./recompute-hashes.js";

const receivedArgs: unknown[] = [];
const fine = job("Fine", (args: unknown) => {
  receivedArgs.push(args);
});
const broken = job("Broken", () => Promise.reject(new PermanentError("broken")));

/** The graph done → broken → last, paused at the broken node. */
async function pausedGraph() {
  receivedArgs.length = 0;
  const w = await jobWorld("memory", fine, broken);
  const run = await w.pawl.build("repair", (g) => {
    g.node("done", { job: "Fine" });
    g.node("broken", { job: broken });
    g.node("last", { job: "Fine" });
  });
  await w.runToEnd();
  const dag = JSON.parse(await run.exportDag());
  const [done, bad, last] = Object.keys(dag.nodes) as [string, string, string];
  return { w, run, dag, done, bad, last };
}

const resumeToEnd = async ({ w, run }: Awaited<ReturnType<typeof pausedGraph>>) => {
  await run.resume();
  await w.runToEnd();
  expect((await w.pawl.verify()).differences).toEqual([]);
  return nodesOf(run);
};

describe("accepted:", () => {
  test("another job for the failed node; completed nodes stay completed", async () => {
    const h = await pausedGraph();
    h.dag.nodes[h.bad].job = "Fine";
    await h.run.importDag(h.dag);
    expect(await resumeToEnd(h)).toEqual(["done completed 1", "broken completed 2", "last completed 1"]);
    expect(await h.run.status()).toBe("completed");
  });

  test("the same graph several times: each import is recorded, and the last one applies", async () => {
    const h = await pausedGraph();
    await h.run.importDag(await h.run.exportDag());
    h.dag.nodes[h.bad].job = "Fine";
    await h.run.importDag(JSON.stringify(h.dag));
    await h.run.importDag(await h.run.exportDag());
    expect((await eventsOf(h.run)).filter((line) => line === "dag.imported")).toHaveLength(3);
    await resumeToEnd(h);
    expect(await h.run.status()).toBe("completed");
  });

  test("added nodes run, and removed nodes that had not completed do not", async () => {
    const h = await pausedGraph();
    delete h.dag.nodes[h.bad];
    h.dag.nodes[h.last].depends_on = [h.done, "n_new"];
    h.dag.nodes.n_new = { name: "added", job: "Fine", args: { n: 5 }, depends_on: [h.done] };
    h.dag.nodes.n_free = { name: "free", job: "Fine", depends_on: [] };
    await h.run.importDag(h.dag);
    await h.run.resume();
    await h.w.runToEnd();
    expect(await h.run.status()).toBe("completed");
    expect(receivedArgs).toContainEqual({ n: 5 });
    const states = await nodesOf(h.run);
    for (const name of ["done", "last", "added", "free"]) expect(states).toContain(`${name} completed 1`);
    expect((await h.w.pawl.verify()).differences).toEqual([]);
    const rows = await h.w.store.log(h.run.id, { after: 0, limit: 1_000 });
    expect(wrongHashes(rows, JSON.parse(await h.run.exportDag())).wrong).toEqual([]);
  });

  test("other names, because nodes are identified by their ids", async () => {
    const h = await pausedGraph();
    h.dag.nodes[h.done].name = "finished";
    h.dag.nodes[h.bad].name = "repaired";
    h.dag.nodes[h.bad].job = "Fine";
    const signature = h.dag.signature;
    await h.run.importDag(h.dag);
    expect(JSON.parse(await h.run.exportDag()).signature).not.toBe(signature);
    await h.run.reattempt("repaired");
    await h.w.runToEnd();
    expect(await nodesOf(h.run)).toEqual(["finished completed 1", "repaired completed 2", "last completed 1"]);
  });

  test("other arguments and options, for nodes that have not run", async () => {
    const h = await pausedGraph();
    h.dag.nodes[h.bad].job = "Fine";
    h.dag.nodes[h.last].args = { edited: true };
    h.dag.options = { concurrency: 1 };
    await h.run.importDag(h.dag);
    await resumeToEnd(h);
    expect(receivedArgs.at(-1)).toEqual({ edited: true });
    expect(JSON.parse(await h.run.exportDag()).options).toEqual({ concurrency: 1 });
  });

  test("an edited graph of a run that has not started", async () => {
    const w = await jobWorld("memory", fine);
    const run = await w.pawl.build("later", (g) => g.node("a", { job: "Gone" }), { start: false });
    await run.importDag((await run.exportDag()).replace("Gone", "Fine"));
    await run.start();
    await w.runToEnd();
    expect(await run.status()).toBe("completed");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("the arguments unchanged, including values that JSON cannot express", async () => {
    receivedArgs.length = 0;
    const w = await jobWorld("memory", fine);
    const args = { at: new Date(5), big: 6n, set: new Set([7]), none: undefined };
    for (const edit of [(text: string) => text, (text: string) => JSON.parse(text)]) {
      const run = await w.pawl.build("typed", (g) => g.node("a", { job: fine, args }), { start: false });
      await run.importDag(edit(await run.exportDag()));
      await run.start();
      await w.runToEnd();
      expect(await run.status()).toBe("completed");
    }
    expect(receivedArgs).toEqual([args, args]);
  });
});

describe("refused, with nothing changed:", () => {
  type PausedGraph = Awaited<ReturnType<typeof pausedGraph>>;

  test.each<[string, (h: PausedGraph) => unknown]>([
    ["a cycle", ({ dag, bad, last }) => void (dag.nodes[bad].depends_on = [last])],
    ["a dependency on an unknown node", ({ dag, last }) => void (dag.nodes[last].depends_on = ["n_nobody"])],
    ["two nodes of the same name", ({ dag, last }) => void (dag.nodes[last].name = "done")],
    [
      "a removed completed node",
      ({ dag, done, bad }) => {
        delete dag.nodes[done];
        dag.nodes[bad].depends_on = [];
      },
    ],
    [
      "changed dependencies of a completed node",
      ({ dag, done }) => {
        dag.nodes.n_new = { name: "new", job: "Fine", depends_on: [] };
        dag.nodes[done].depends_on = ["n_new"];
      },
    ],
    ["a node without a job", ({ dag, last }) => void delete dag.nodes[last].job],
    ["a job that was never registered", ({ dag, last }) => void (dag.nodes[last].job = "Nobody")],
  ])("%s", async (_what, edit) => {
    const h = await pausedGraph();
    const before = [await h.run.history(), await h.run.exportDag(), await h.run.get()];
    edit(h);
    expect(await errorOf(h.run.importDag(h.dag))).toBeInstanceOf(GraphError);
    expect([await h.run.history(), await h.run.exportDag(), await h.run.get()]).toEqual(before);
  });

  test.each<[string, (h: PausedGraph) => unknown]>([
    ["invalid JSON", () => "{"],
    ["JSON that is not an object", () => "5"],
    ["JSON null", () => "null"],
    ["nothing", () => undefined],
    ["null", () => null],
    ["a number", () => 5],
    ["a list", () => []],
    ["an unknown version", ({ dag }) => ({ ...dag, version: 2 })],
    ["no version", ({ dag }) => ({ ...dag, version: undefined })],
    ["no nodes", ({ dag }) => ({ ...dag, nodes: {} })],
    ["a list of nodes", ({ dag }) => ({ ...dag, nodes: Object.values(dag.nodes) })],
    ["a node that is null", ({ dag, last }) => ({ ...dag, nodes: { ...dag.nodes, [last]: null } })],
    [
      "a node without a name",
      ({ dag, last }) => ({ ...dag, nodes: { ...dag.nodes, [last]: { job: "Fine", depends_on: [] } } }),
    ],
    [
      "dependencies that are not a list",
      ({ dag, last }) => ({ ...dag, nodes: { ...dag.nodes, [last]: { name: "x", job: "Fine", depends_on: "done" } } }),
    ],
    [
      "a job that is not a string",
      ({ dag, last }) => ({ ...dag, nodes: { ...dag.nodes, [last]: { name: "x", job: 5, depends_on: [] } } }),
    ],
    [
      "an id with a slash",
      ({ dag, done }) => ({
        ...dag,
        nodes: { ...dag.nodes, [`${done}/part`]: { name: "x", job: "Fine", depends_on: [] } },
      }),
    ],
    ["an invalid frozen_at", ({ dag }) => ({ ...dag, frozen_at: "yesterday" })],
    ["options that are not an object", ({ dag }) => ({ ...dag, options: null })],
    ["a concurrency of 0", ({ dag }) => ({ ...dag, options: { concurrency: 0 } })],
  ])("%s", async (_what, edited) => {
    const h = await pausedGraph();
    const before = [await h.run.history(), await h.run.exportDag(), await h.run.get()];
    expect(await errorOf(h.run.importDag(edited(h) as never))).toBeInstanceOf(InvalidInputError);
    expect([await h.run.history(), await h.run.exportDag(), await h.run.get()]).toEqual(before);
  });

  test("arguments that are too large", async () => {
    const h = await pausedGraph();
    h.dag.nodes[h.last].args = "x".repeat(1_100_000);
    expect(await errorOf(h.run.importDag(h.dag))).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  });

  test("an import into a run that is running, and into one that has ended", async () => {
    const [started, end] = [gate(), gate()];
    const slow = job("Slow", async () => {
      started.open();
      await end.opened;
    });
    const w = await jobWorld("memory", slow);
    const run = await w.pawl.build("busy", (g) => g.node("a", { job: slow }));
    const settled = w.worker1.settle();
    await started.opened;
    const dag = await run.exportDag();
    expect(await errorOf(run.importDag(dag))).toBeInstanceOf(InvalidStateError);
    end.open();
    await settled;
    expect(await run.status()).toBe("completed");
    expect(await errorOf(run.importDag(dag))).toBeInstanceOf(InvalidStateError);
    expect(await eventsOf(run)).not.toContain("dag.imported");
  });

  test("a graph without a node that is being executed", async () => {
    const [started, end] = [gate(), gate()];
    const slow = job("Slow", async () => {
      started.open();
      await end.opened;
    });
    const w = await jobWorld("memory", slow, fine);
    const run = await w.pawl.build("busy", (g) => {
      g.node("a", { job: slow });
      g.node("b", { job: "Fine", dependsOn: null });
    });
    const settled = w.worker1.settle();
    await started.opened;
    await run.pause();
    const dag = JSON.parse(await run.exportDag());
    delete dag.nodes[Object.keys(dag.nodes)[0] as string];
    const error = await errorOf(run.importDag(dag));
    expect(error).toBeInstanceOf(GraphError);
    expect(error.message).toContain("has started");
    end.open();
    await settled;
  });
});

test("a removed node that had a retry scheduled is not waited for", async () => {
  const flaky = job("Flaky", () => Promise.reject(new Error("again")), { retry: { attempts: 9, initial: "1h" } });
  const [started, end] = [gate(), gate()];
  const slow = job("Slow", async () => {
    started.open();
    await end.opened;
  });
  const w = await jobWorld("memory", flaky);
  const other = await w.jobWorker(slow);
  const run = await w.pawl.build("less", (g) => {
    g.node("flaky", { job: flaky });
    g.node("slow", { job: slow, dependsOn: null });
  });
  await w.worker1.settle();
  const working = other.settle();
  await started.opened;
  await run.pause();
  const dag = JSON.parse(await run.exportDag());
  delete dag.nodes[Object.keys(dag.nodes)[0] as string];
  await run.importDag(dag);
  await run.resume();
  await w.worker1.settle();
  expect((await run.get()).waitingFor).toEqual([{ kind: "jobs", open: 1, jobs: ["Slow"] }]);
  expect((await w.pawl.verify(run.id)).differences).toEqual([]);
  end.open();
  await working;
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
});
