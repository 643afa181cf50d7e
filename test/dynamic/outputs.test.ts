/** Arguments and outputs of jobs are passed unchanged, and a job gets complete information about its node. */
import { job } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { idOf, jobWorld, nodesOf } from "./job-world.js";

const values = [undefined, null, new Date(5), 6n, new Map([["a", new Set([1])]]), "\u0000 ' \" 🚀", -0, { $pawl: "x" }];

forMemoryAnd("sqlite", (kind) => {
  test("arguments and outputs may be any value that a payload may be", async () => {
    const receivedArgs: unknown[] = [];
    const echo = job("Echo", (args: { value: unknown }, { node }) => {
      receivedArgs[Number(node.name.slice(1))] = args.value;
      return args.value;
    });
    const w = await jobWorld(kind, echo);
    const run = await w.pawl.build("echo", (g) =>
      g.fanOut(values, { name: (_value, n) => `n${n}`, job: echo, args: (value) => ({ value }) }),
    );
    await w.runToEnd();
    await run.result({ timeout: "100s" });
    expect(receivedArgs).toEqual(values);
    const outputs = new Map(
      (await run.history()).map(({ node, data }) => [node, (data as { output?: unknown })?.output]),
    );
    expect((await run.nodes()).map(({ id }) => outputs.get(id))).toEqual(values);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("many large outputs at once are split over several messages, and arrive", async () => {
    const large = job("Large", (_args: void, { node }) => `${node.name} ${"x".repeat(900_000)}`);
    const w = await jobWorld(kind, large);
    const names = Array.from({ length: 24 }, (_, n) => `n${n}`);
    const run = await w.pawl.build("large", (g) => g.fanOut(names, { name: (name) => name, job: large }));
    await w.runToEnd();
    expect(await run.status()).toBe("completed");
    expect(await nodesOf(run)).toEqual(names.map((name) => `${name} completed 1`));
  });
});

test("a job gets its run, its node and its attempt, and has one idempotency key for all attempts", async () => {
  const seen: unknown[] = [];
  const informed = job(
    "Told",
    (args: { n: number }, { run, node, attempt, idempotencyKey }) => {
      seen.push([args.n, run.id, node, attempt, idempotencyKey]);
      if (attempt === 1) throw new Error("once more");
    },
    { retry: { initial: 1 } },
  );
  const w = await jobWorld("memory", informed);
  const run = await w.pawl.build("told", (g) => g.node("only", { job: informed, args: { n: 5 } }));
  await w.runToEnd();
  const id = await idOf(run, "only");
  const node = { id, name: "only" };
  expect(seen).toEqual([
    [5, run.id, node, 1, `${run.id}:${id}`],
    [5, run.id, node, 2, `${run.id}:${id}`],
  ]);
});

test("a job may be a workflow: its steps, sleeps and signals belong to its own run", async () => {
  const executed: string[] = [];
  const story = job("Story", async (_args: void, { ctx }) => {
    await ctx.step("one", () => void executed.push("one"));
    await ctx.sleep("night", "8h");
    return ctx.step("two", () => executed.push("two"));
  });
  const w = await jobWorld("memory", story);
  const run = await w.pawl.build("story", (g) => g.node("only", { job: story }));
  await w.worker1.settle();
  expect(executed).toEqual(["one"]);
  await w.runToEnd();
  expect(executed).toEqual(["one", "two"]);
  expect(await run.status()).toBe("completed");
});
