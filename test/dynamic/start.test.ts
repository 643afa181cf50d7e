/** When a graph begins, under which key and name, and about whom: the options of start hold for graphs, too. */
import { InvalidInputError, InvalidStateError, job } from "pawl";
import { expect, test } from "vitest";
import { errorOf, world } from "../function-style/support.js";
import { forEachStore } from "../stores/harness.js";
import { jobWorld, nodeRunsOf, nodesOf } from "./support.js";

const noop = job("Noop", () => {});

forEachStore((kind) => {
  test("a graph that is only stored begins with start(), and only once", async () => {
    const w = await jobWorld(kind, noop);
    const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
    w.clock.moveTo(w.clock.read() + 1e9);
    await w.toTheEnd();
    expect(await run.status()).toBe("pending");
    expect(await nodesOf(run)).toEqual(["a pending 0"]);
    expect((await run.explain()).text).toBe("It has not begun: start() lets it.");
    expect((await w.pawl.verify()).differences).toEqual([]);
    await run.start();
    await w.toTheEnd();
    expect(await run.status()).toBe("completed");
    expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("a second start is refused, whether or not a worker has taken the run up meanwhile", async () => {
  const w = await jobWorld("memory", noop);
  const nobody = await world();
  for (const { pawl } of [nobody, w]) {
    const run = await pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
    await run.start();
    expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
  }
});

test("signals, pause and resume do not start what is only stored", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.signal("hello");
  await w.toTheEnd();
  await run.pause();
  await w.toTheEnd();
  expect(await run.status()).toBe("paused");
  await run.resume();
  await w.toTheEnd();
  expect(await nodesOf(run)).toEqual(["a pending 0"]);
  expect(await run.status()).toBe("pending");
  await run.start();
  await w.toTheEnd();
  expect(await run.status()).toBe("completed");
});

test("what is stored and canceled never begins", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.cancel("not needed");
  await w.toTheEnd();
  expect(await run.status()).toBe("canceled");
  expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
  expect(await nodeRunsOf(w, "Noop")).toEqual([]);
});

test("a start that was acknowledged while it was paused counts as soon as it is resumed", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("later", (g) => g.node("a", { job: noop }), { start: false });
  await run.pause();
  await run.start();
  await w.toTheEnd();
  expect(await run.status()).toBe("paused");
  await run.resume();
  await w.toTheEnd();
  expect(await run.status()).toBe("completed");
});

test("what is due has been started", async () => {
  const w = await jobWorld("memory", noop);
  const run = await w.pawl.build("now", (g) => g.node("a", { job: noop }), { delay: "1h" });
  expect(await errorOf(run.start())).toBeInstanceOf(InvalidStateError);
});

test("an idempotency key builds a graph once: whoever builds the same again gets the first run", async () => {
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

test("a delay, a priority, a hero and tags are those of the run; the runs of its nodes are about nobody", async () => {
  const w = await jobWorld("memory", noop);
  const options = { delay: "1h", priority: 4, hero: { type: "User", id: "42" }, tags: ["import"] } as const;
  const run = await w.pawl.build("mine", (g) => g.node("a", { job: noop }), options);
  await w.worker1.settle();
  expect(await run.status()).toBe("pending");
  await w.toTheEnd();
  expect(await run.get()).toMatchObject({ status: "completed", priority: 4, hero: options.hero, tags: ["import"] });
  const [nodeRun] = await nodeRunsOf(w, "Noop");
  expect(nodeRun).toMatchObject({ hero: null, priority: 4 });
  expect((await w.pawl.runs({ hero: options.hero })).runs.map(({ id }) => id)).toEqual([run.id]);
  // Two graphs about the same hero are nothing unusual.
  await w.pawl.build("mine", (g) => g.node("a", { job: noop }), { hero: options.hero });
});

test("nodes have the priority and the tags of their jobs, whoever coordinates", async () => {
  const urgent = job("Urgent", () => {}, { priority: 3, tags: ["mail"] });
  const w = await jobWorld("memory", noop);
  await w.jobWorker(urgent);
  await w.pawl.build("mixed", (g) => g.node("a", { job: urgent }), { priority: 4 });
  await w.worker1.settle();
  const [nodeRun] = await nodeRunsOf(w, "Urgent");
  expect(nodeRun).toMatchObject({ priority: 7, tags: ["mail"] });
});

test("the highest priorities that a graph and a job can have are not too much together", async () => {
  const highest = 1_000_000;
  const urgent = job("Urgent", () => {}, { priority: highest });
  const w = await jobWorld("memory", urgent);
  const run = await w.pawl.build("urgent", (g) => g.node("a", { job: urgent }), { priority: highest });
  await w.toTheEnd();
  expect(await run.status()).toBe("completed");
});

test("the jobs of a module are given as a list; the module itself is refused, with the way to do it", async () => {
  const exported = { one: job("One", () => 1), two: job("Two", () => 2) };
  const { pawl } = await world();
  for (const jobs of [exported, [exported.one, "Two"]])
    expect(() => pawl.worker({ workflows: [], jobs: jobs as never })).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining("Object.values(module)") }),
    );
  expect(pawl.worker({ workflows: [], jobs: Object.values(exported) }).phase).toBe("idle");
  expect(pawl.worker({ workflows: Object.values(exported) }).phase).toBe("idle");
});
