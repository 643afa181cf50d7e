/** When a graph starts, under which key and name, and with which hero: the options of start apply to graphs, too. */
import {
  type BuildOptions,
  graph,
  InvalidInputError,
  InvalidStateError,
  job,
  Pawl,
  step,
  Workflow,
  workflow,
} from "pawl";
import { describe, expect, test } from "vitest";
import { MemoryStore } from "../../src/store/memory/index.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";
import { jobWorld, nodeRunsOf, nodesOf } from "./job-world.js";

const noop = job("Noop", () => {});

forMemoryAnd("mysql", (kind) => {
  test("a graph that is built with start: false starts with start(), and only once", async () => {
    const w = await jobWorld(kind, noop);
    const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
    w.clock.moveTo(w.clock.read() + 1e9);
    await w.runToEnd();
    expect(await run.status()).toBe("pending");
    expect(await nodesOf(run)).toEqual(["a pending 0"]);
    expect((await run.explain()).text).toBe("It has not started: call start() on its handle.");
    expect((await w.pawl.verify()).differences).toEqual([]);
    await run.start();
    await w.runToEnd();
    expect(await run.status()).toBe("completed");
    expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a second start is refused, whether or not a worker has claimed the run meanwhile", async () => {
  const w = await jobWorld("memory", noop);
  const withoutWorkers = await world();
  for (const { pawl } of [withoutWorkers, w]) {
    const run = await pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
    await run.start();
    expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
  }
});

test("signals, pause and resume do not start a graph that is only stored", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.signal("hello");
  await w.runToEnd();
  await run.pause();
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  await run.resume();
  await w.runToEnd();
  expect(await nodesOf(run)).toEqual(["a pending 0"]);
  expect(await run.status()).toBe("pending");
  await run.start();
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
});

test("a stored graph that is canceled never starts", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.cancel("not needed");
  await w.runToEnd();
  expect(await run.status()).toBe("canceled");
  expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
  expect(await nodeRunsOf(w, "Noop")).toEqual([]);
});

test("a start that was acknowledged while the run was paused takes effect as soon as it is resumed", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.pause();
  await run.start();
  await w.runToEnd();
  expect(await run.status()).toBe("paused");
  await run.resume();
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
});

test("start() of a graph that is scheduled with a delay is refused", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("now", (g) => g.node("a", { job: noop }), { delay: "1h" });
  expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
});

test("an idempotency key builds a graph once: building the same graph again returns the first run", async () => {
  const w = await jobWorld("memory", noop);
  const build = (names: string[]) =>
    w.pawl.build("once", (g) => void names.map((name) => g.node(name, { job: noop })), { idempotencyKey: "k" });
  const first = await build(["a", "b"]);
  w.clock.moveTo(w.clock.read() + 1_000);
  const again = await build(["a", "b"]);
  expect(again.id).toBe(first.id);
  expect(await errorOf(build(["a", "c"]))).toBeInstanceOf(InvalidInputError);
  expect((await w.pawl.runs({ workflow: "once" })).runs).toHaveLength(1);
});

test("a delay, a priority, a hero and tags apply to the run; the runs of its nodes have no hero", async () => {
  const w = await jobWorld("memory", noop);
  const options = { delay: "1h", priority: 4, hero: { type: "User", id: "42" }, tags: ["import"] } as const;
  const run = await w.pawl.build("mine", (g) => g.node("a", { job: noop }), options);
  await w.worker1.settle();
  expect(await run.status()).toBe("pending");
  await w.runToEnd();
  expect(await run.get()).toMatchObject({ status: "completed", priority: 4, hero: options.hero, tags: ["import"] });
  const [nodeRun] = await nodeRunsOf(w, "Noop");
  expect(nodeRun).toMatchObject({ hero: null, priority: 4 });
  expect((await w.pawl.runs({ hero: options.hero })).runs.map(({ id }) => id)).toEqual([run.id]);
});

forMemoryAnd("mysql", (kind) => {
  test("one graph of a name is active for a hero at a time, unless several are allowed", async () => {
    const w = await jobWorld(kind, noop);
    const hero = { type: "User", id: "42" };
    const build = (name: string, options: BuildOptions) =>
      w.pawl.build(name, (g) => g.node("a", { job: noop }), options);
    const first = await build("mine", { hero, start: false });
    expect(await errorOf(build("mine", { hero }))).toMatchObject({
      name: "AlreadyActiveError",
      runId: first.id,
      workflow: "mine",
      hero,
    });
    await build("others", { hero });
    await build("mine", { hero: { type: "User", id: "43" } });
    await build("mine", { hero, allowMultiple: true });
    expect((await w.pawl.runs({ workflow: "mine", hero })).runs).toHaveLength(2);
    await first.start();
    await w.runToEnd();
    const again = await build("mine", { hero });
    expect(again.id).not.toBe(first.id);
  });
});

describe("a name belongs to one workflow", () => {
  class Onboarding extends Workflow {
    static {
      this.step("a", () => {});
    }
  }
  const taken = 'build("Onboarding", …) has the name of a registered workflow; rename the graph.';

  test("a graph with the name of a class is refused, in the process of the class and in others", async () => {
    const store = new MemoryStore();
    const [one, other] = [new Pawl(store, silent), new Pawl(store, silent)];
    await one.start(Onboarding);
    for (const pawl of [one, other])
      expect(await errorOf(pawl.build("Onboarding", (g) => g.node("a", { job: noop })))).toMatchObject({
        code: "INVALID_INPUT",
        message: taken,
      });
    expect((await one.runs()).runs).toHaveLength(1);
  });

  test("a class with the name of a graph is refused", async () => {
    const { pawl } = await world();
    await pawl.build("Onboarding", (g) => g.node("a", { job: noop }));
    const message =
      'The name "Onboarding" belongs to graphs that are built at run time, build("Onboarding", …); rename the workflow.';
    expect(await errorOf(pawl.start(Onboarding))).toMatchObject({ code: "INVALID_INPUT", message });
    expect(await errorOf(pawl.worker({ workflows: [Onboarding] }).start())).toMatchObject({ message });
  });

  test("two workflows of one name and of different styles are refused; new code of the same style is a deploy", async () => {
    const { pawl } = await world();
    await pawl.start(Onboarding);
    const drawn = graph("Onboarding", [step("a", () => {})]);
    const message =
      'Two workflows are called "Onboarding": a class, and a graph, graph(…); rename one of them, or give it a version.';
    expect(await errorOf(pawl.start(drawn))).toMatchObject({ code: "INVALID_INPUT", message });
    expect(await errorOf(pawl.worker({ workflows: [drawn] }).start())).toMatchObject({ message });
    expect(await errorOf(pawl.start(workflow("Onboarding", () => {})))).toMatchObject({ code: "INVALID_INPUT" });
    await pawl.start(graph("Onboarding", [step("a", () => {})], { version: "2" }));
    const Redeployed = class Onboarding extends Workflow {
      static {
        this.step("b", () => {});
      }
    };
    await pawl.start(Redeployed);
  });

  test("whether a graph's name is free is read once per process and name", async () => {
    const store = new MemoryStore();
    let lookups = 0;
    const workflowOf = store.workflow.bind(store);
    store.workflow = (name) => {
      lookups += 1;
      return workflowOf(name);
    };
    const pawl = new Pawl(store, silent);
    for (let time = 0; time < 3; time += 1) await pawl.build("mine", (g) => g.node("a", { job: noop }));
    expect(lookups).toBe(1);
  });
});

test("nodes have the priority and the tags of their jobs, whichever worker coordinates", async () => {
  const urgent = job("Urgent", () => {}, { priority: 3, tags: ["mail"] });
  const w = await jobWorld("memory", noop);
  await w.jobWorker(urgent);
  await w.pawl.build("mixed", (g) => g.node("a", { job: urgent }), { priority: 4 });
  await w.worker1.settle();
  const [nodeRun] = await nodeRunsOf(w, "Urgent");
  expect(nodeRun).toMatchObject({ priority: 7, tags: ["mail"] });
});

test("the maximum priorities of a graph and of a job do not overflow together", async () => {
  const highest = 1_000_000;
  const urgent = job("Urgent", () => {}, { priority: highest });
  const w = await jobWorld("memory", urgent);
  const run = await w.pawl.build("urgent", (g) => g.node("a", { job: urgent }), { priority: highest });
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
});

test("the jobs of a module are passed as a list; the module itself is refused, and the error says how to pass its jobs", async () => {
  const exported = { one: job("One", () => 1), two: job("Two", () => 2) };
  const { pawl } = await world();
  for (const jobs of [exported, [exported.one, "Two"]])
    expect(() => pawl.worker({ workflows: [], jobs: jobs as never })).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining("Object.values(module)") }),
    );
  expect(pawl.worker({ workflows: [], jobs: Object.values(exported) }).phase).toBe("idle");
  expect(pawl.worker({ workflows: Object.values(exported) }).phase).toBe("idle");
});
