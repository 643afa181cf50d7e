/** Building a graph: the predecessors of each node, and the graphs that are refused before anything is stored. */
import { GraphError, InvalidInputError, job, SerializationError } from "pawl";
import { describe, expect, test } from "vitest";
import { errorOf } from "../support/waiting.js";
import { nodesOf, startJobs } from "./job-world.js";

const noop = job("Noop", () => {});
const withArgs = job("WithArgs", (args: { n: number }) => args.n);

type Build = Parameters<Awaited<ReturnType<typeof startJobs>>["pawl"]["build"]>[1];

/** Returns the predecessors of each node, by name. */
async function dependenciesIn(build: Build): Promise<Record<string, readonly string[]>> {
  const t = await startJobs(noop, withArgs);
  const run = await t.pawl.build("built", build);
  const planned = Object.fromEntries((await run.nodes()).map((node) => [node.name, node.after]));
  await t.speedrun(run);
  expect((await nodesOf(run)).every((line) => line.endsWith(" completed 1"))).toBe(true);
  expect((await t.pawl.verify()).differences).toEqual([]);
  return planned;
}

/** Returns the error of a refused graph, and checks that nothing was stored. */
async function refusalOf(build: Build, name = "built", options?: object): Promise<Error> {
  const t = await startJobs(noop);
  const error = await errorOf(t.pawl.build(name, build, options));
  expect((await t.pawl.runs({})).runs).toEqual([]);
  return error;
}

describe("a node comes after", () => {
  test("the previous node by default, the first node comes after none, and null makes a node an entry point", async () => {
    const planned = await dependenciesIn((g) => {
      g.node("a", { job: noop });
      g.node("b", { job: noop });
      g.node("c", { job: noop, dependsOn: null });
      g.node("d", { job: noop, dependsOn: "a" });
      g.node("e", { job: noop, dependsOn: ["c", "d"] });
      g.node("f", { job: noop });
      g.node("g", { job: noop, dependsOn: [] });
    });
    expect(planned).toEqual({ a: [], b: ["a"], c: [], d: ["a"], e: ["c", "d"], f: ["e"], g: [] });
  });

  test("all nodes of the fan-out before it", async () => {
    const planned = await dependenciesIn((g) => {
      g.node("first", { job: noop });
      g.fanOut([1, 2], { name: (n) => `part_${n}`, job: withArgs, args: (n) => ({ n }) });
      g.fanOut(new Set(["x", "y"]), { name: (item, index) => `${item}${index}`, job: noop });
      g.node("last", { job: noop });
    });
    expect(planned).toEqual({
      first: [],
      part_1: ["first"],
      part_2: ["first"],
      x0: ["part_1", "part_2"],
      y1: ["part_1", "part_2"],
      last: ["x0", "y1"],
    });
  });

  test("the node before an empty fan-out; a node that depends on the empty list starts at once", async () => {
    const planned = await dependenciesIn((g) => {
      g.node("first", { job: noop });
      const none = g.fanOut([], { name: () => "never", job: noop });
      g.node("next", { job: noop });
      g.node("free", { job: noop, dependsOn: none });
    });
    expect(planned).toEqual({ first: [], next: ["first"], free: [] });
  });

  test("each node that it names, once, however often and by handle or name, even before they are declared", async () => {
    const planned = await dependenciesIn((g) => {
      const a = g.node("a", { job: noop });
      g.node("b", { job: noop, dependsOn: [a, "a", a, "c"] });
      g.node("c", { job: noop, dependsOn: null });
    });
    expect(planned).toEqual({ a: [], b: ["a", "c"], c: [] });
  });

  test("nodes that an asynchronous builder adds after an await", async () => {
    const planned = await dependenciesIn(async (g) => {
      g.node("a", { job: noop });
      await Promise.resolve();
      g.node("b", { job: noop });
    });
    expect(planned).toEqual({ a: [], b: ["a"] });
  });
});

test("node names may contain all allowed characters", async () => {
  const names = [
    "n_00000001",
    "zwölf — 12",
    "a b",
    "a.b:c",
    "名前",
    "🚀",
    "constructor",
    "toString",
    "__proto__",
    "a#b",
    "x~1",
  ];
  const t = await startJobs(noop);
  const run = await t.pawl.build("odd", (g) => {
    for (const name of names) g.node(name, { job: noop });
  });
  await t.speedrun(run);
  expect(await nodesOf(run)).toEqual(names.map((name) => `${name} completed 1`));
});

describe("refused:", () => {
  test("a graph without nodes", async () => {
    const error = await refusalOf(() => {});
    expect(error).toBeInstanceOf(GraphError);
    expect(error.message).toBe(
      'Graph "built" has no nodes; add them with g.node(name, { job }) or g.fanOut(items, …).',
    );
  });

  test("two nodes of the same name", async () => {
    const error = await refusalOf((g) => {
      g.node("a", { job: noop });
      g.fanOut([1, 2], { name: () => "a", job: noop });
    });
    expect(error).toBeInstanceOf(GraphError);
    expect(error.message).toContain('two nodes called "a"');
  });

  test("a node after one that does not exist, or that belongs to another graph", async () => {
    const byName = await refusalOf((g) => g.node("a", { job: noop, dependsOn: "b" }));
    expect(byName).toBeInstanceOf(GraphError);
    expect(byName).toMatchObject({ nodes: ["a", "b"], workflow: "built" });
    const foreign = await refusalOf((g) => g.node("a", { job: noop, dependsOn: { id: "n_1", name: "elsewhere" } }));
    expect(foreign.message).toContain('depends on "elsewhere", which is not in the graph');
    // A property name of Object.prototype is not a node.
    expect(await refusalOf((g) => g.node("a", { job: noop, dependsOn: "toString" }))).toBeInstanceOf(GraphError);
  });

  test("a cycle, which is shown as a path", async () => {
    const error = await refusalOf((g) => {
      g.node("start", { job: noop });
      g.node("a", { job: noop, dependsOn: ["start", "c"] });
      g.node("b", { job: noop });
      g.node("c", { job: noop });
    });
    expect(error).toBeInstanceOf(GraphError);
    expect(error.message).toMatch(
      /goes in a circle: (a → b → c → a|b → c → a → b|c → a → b → c)\. Leave out one of these dependencies\.$/,
    );
    const itself = await refusalOf((g) => g.node("a", { job: noop, dependsOn: "a" }));
    expect(itself.message).toContain("a → a");
  });

  test("arguments that cannot be stored, with the path to the value", async () => {
    const error = await refusalOf((g) => g.node("a", { job: "Noop", args: { deep: [() => {}] } }));
    expect(error).toBeInstanceOf(SerializationError);
    expect(error.message).toContain('the arguments of node "a"');
  });

  test("arguments larger than a payload may be, when the graph is built and not when the node is to run", async () => {
    const error = await refusalOf((g) => g.node("huge", { job: "Noop", args: { text: "x".repeat(1_100_000) } }));
    expect(error).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(error.message).toContain('"huge"');
  });

  test.each<[string, Build]>([
    ["no options", (g) => g.node("a", undefined as never)],
    ["null for options", (g) => g.node("a", null as never)],
    ["no job", (g) => g.node("a", {} as never)],
    ["a number as the job", (g) => g.node("a", { job: 5 as never })],
    ["an empty name of a job", (g) => g.node("a", { job: "" })],
    ["a function as the job", (g) => g.node("a", { job: (() => {}) as never })],
    ["a name that is not a string", (g) => g.node(7 as never, { job: noop })],
    ["an empty name", (g) => g.node("", { job: noop })],
    ["a name that is too long", (g) => g.node("x".repeat(500), { job: noop })],
    ["a name with a slash", (g) => g.node("a/b", { job: noop })],
    ["a number in dependsOn", (g) => g.node("a", { job: noop, dependsOn: 5 as never })],
    ["a hole in dependsOn", (g) => g.node("a", { job: noop, dependsOn: [undefined] as never })],
    ["fanOut without options", (g) => g.fanOut([1], undefined as never)],
    ["fanOut without names", (g) => g.fanOut([1], { job: noop } as never)],
    ["fanOut over null", (g) => g.fanOut(null as never, { name: () => "a", job: noop })],
    ["fanOut over a number", (g) => g.fanOut(5 as never, { name: () => "a", job: noop })],
    [
      "fanOut with args that are not a function",
      (g) => g.fanOut([1], { name: () => "a", job: noop, args: {} as never }),
    ],
    ["no builder", undefined as never],
  ])("%s", async (_what, build) => {
    expect(await refusalOf(build)).toBeInstanceOf(InvalidInputError);
  });

  test.each([
    ["an empty name", "", {}],
    ["a number for a name", 5, {}],
    ["a concurrency of 0", "built", { concurrency: 0 }],
    ["a fractional concurrency", "built", { concurrency: 1.5 }],
    ["a concurrency that is a string", "built", { concurrency: "2" }],
    ["an unknown onNodeFailure", "built", { onNodeFailure: "explode" }],
    ["an invalid priority", "built", { priority: Number.NaN }],
    ["both a delay and an instant", "built", { delay: "1h", startAt: new Date() }],
    ["null for options", "built", null],
  ])("a graph with %s", async (_what, name, options) => {
    const error = await refusalOf((g) => g.node("a", { job: noop }), name as string, options as object);
    expect(error).toBeInstanceOf(InvalidInputError);
  });

  test("an error that the builder function throws reaches the caller unchanged", async () => {
    const thrown = new Error("no such user");
    expect(
      await refusalOf(() => {
        throw thrown;
      }),
    ).toBe(thrown);
  });
});
