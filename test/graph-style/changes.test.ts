/**
 * The code of a graph changes while runs are open: which changes are applied, which are recorded in the log, and which
 * pause the run.
 */
import { branch, type GraphDefinition, graph, type Logger, step, Workflow } from "pawl";
import { beforeEach, expect, test } from "vitest";
import { silent, world } from "../support/virtual-worlds.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});
const recording = <const Name extends string>(name: Name) =>
  step(name, () => {
    executed.push(name);
    return name;
  });
const nap = step("nap", (ctx) => ctx.sleep("rest", "1 day"));
const [a, b, c] = [recording("a"), recording("b"), recording("c")];

/** Starts a run with the old code, sleeps for a day, and continues with the new code. */
async function runThroughDeploy(before: GraphDefinition, after: GraphDefinition) {
  const warnings: string[] = [];
  const logger: Logger = { ...silent, warn: (message) => void warnings.push(String(message)) };
  const w = await world();
  const old = await w.worker([before]);
  const run = await w.pawl.start(before);
  const due = (await old.settle()) as number;
  await old.worker.stop();
  w.clock.moveTo(due);
  const { settle, worker } = await w.worker([after], {}, logger);
  await settle();
  const changes = (await run.history()).filter(({ type }) => type === "shape.changed").map(({ data }) => data);
  return { w, run, settle, worker, warnings, changes };
}

test("new code of the same shape records no change and logs no warning", async () => {
  const { run, changes, warnings } = await runThroughDeploy(
    graph("g", [a, nap.after(a)]),
    graph("g", [a, nap.after(a)]),
  );
  expect(await run.status()).toBe("completed");
  expect(changes).toEqual([]);
  expect(warnings).toEqual([]);
});

test("a completed step that was removed on purpose is reported, and the run continues", async () => {
  const before = graph("g", [a, b, nap.after(a, b)]);
  const after = graph("g", [b, nap.after(b), c.after(nap)], { removedSteps: ["a"] });
  const { w, run, changes, warnings } = await runThroughDeploy(before, after);
  expect(await run.result()).toBe("c");
  expect(changes).toEqual([{ shape: after.signature, removedSteps: ["a"] }]);
  expect(warnings).toEqual([
    `Run ${run.id}: the steps of "g" have changed since the run was last executed. The log has "a", which the code no longer has.`,
  ]);
  expect(await w.pawl.verify()).toMatchObject({ differences: [] });
});

test("a new step at the end runs without a report", async () => {
  const after = graph("g", [a, nap.after(a), c.after(nap)]);
  const { run, changes } = await runThroughDeploy(graph("g", [a, nap.after(a)]), after);
  expect(await run.result()).toBe("c");
  expect(changes).toEqual([{ shape: after.signature }]);
});

test("new steps before a completed step run late, and that is recorded", async () => {
  const after = graph("g", [a, b.after(a), c.after(b), nap.after(c)]);
  const { run, changes } = await runThroughDeploy(graph("g", [a, nap.after(a)]), after);
  expect(await run.status()).toBe("completed");
  expect(executed).toEqual(["a", "b", "c"]);
  expect(changes).toEqual([{ shape: after.signature, passedSteps: ["b", "c"] }]);
});

test("changed dependencies apply from now on", async () => {
  const after = graph("g", [a, nap.after(a), b.after(nap), c.after(b)]);
  const { run, changes } = await runThroughDeploy(graph("g", [a, nap.after(a), b.after(nap), c.after(nap)]), after);
  await run.result();
  expect(executed).toEqual(["a", "b", "c"]);
  expect(changes).toEqual([{ shape: after.signature }]);
});

test("a change is recorded once, and again when the code changes back", async () => {
  const listen = step("listen", async (ctx) => {
    for (let n = 0; n < 4; n += 1) await ctx.waitForSignal("go");
  });
  const [one, two] = [graph("g", [a, listen]), graph("g", [a, listen, b])];
  const w = await world();
  const run = await w.pawl.start(one);
  for (const code of [one, two, two, one]) {
    const { worker, settle } = await w.worker([code]);
    await run.signal("go");
    await settle();
    await worker.stop();
  }
  expect(await run.status()).toBe("completed");
  const changes = (await run.history()).filter(({ type }) => type === "shape.changed").map(({ data }) => data);
  expect(changes).toEqual([{ shape: two.signature }, { shape: one.signature, removedSteps: ["b"] }]);
});

test("a step that had started and is missing from the new code pauses the run, and can be restored", async () => {
  const before = graph("g", [a, nap.after(a), b.after(nap)]);
  const { w, run, worker, changes } = await runThroughDeploy(before, graph("g", [a, b.after(a)]));
  expect(await run.get()).toMatchObject({
    status: "paused",
    pauseReason: expect.stringContaining('has no step "nap"'),
  });
  expect((await run.get()).pauseReason).toContain("skip()");
  expect(changes).toMatchObject([{ removedSteps: ["nap"] }]);
  expect(executed).toEqual(["a"]);
  await worker.stop();
  const restored = await w.worker([before]);
  await run.resume();
  await restored.settle();
  expect(await run.result()).toBe("b");
  expect(executed).toEqual(["a", "b"]);
});

test("a step that had started and is missing from the new code can be skipped", async () => {
  const { run, settle } = await runThroughDeploy(
    graph("g", [a, nap.after(a), b.after(nap)]),
    graph("g", [a, b.after(a)]),
  );
  await run.skip();
  await settle();
  expect(await run.result()).toBe("b");
  expect(executed).toEqual(["a", "b"]);
});

test("a branch whose chosen case is missing from the new code pauses the run", async () => {
  const way = (label: string) => branch("way", () => label as never, { [label]: [b] });
  const left = way("left");
  const right = way("right");
  const { run } = await runThroughDeploy(graph("g", [left, nap.after(left)]), graph("g", [right, nap.after(right)]));
  expect((await run.get()).pauseReason).toContain('Branch "way" of graph "g" has chosen "left"');
});

test("a step that must be compensated and is missing from the new code pauses the run when it fails", async () => {
  const compensated = step("book", () => "b", { compensate: () => void executed.push("unbook") });
  const fails = step(
    "pay",
    () => {
      throw new Error("declined");
    },
    { retry: { attempts: 1 } },
  );
  const before = graph("g", [compensated, nap.after(compensated), fails.after(nap)]);
  const { run } = await runThroughDeploy(before, graph("g", [nap, fails.after(nap)], { removedSteps: ["book"] }));
  expect(await run.get()).toMatchObject({ status: "paused" });
  expect((await run.get()).pauseReason).toContain('Step "book" must be compensated');
});

test("the changes of a class are in the history of its runs, too", async () => {
  const define = (steps: readonly string[]) => {
    class Chain extends Workflow {
      static {
        for (const name of steps)
          this.step(name, name === "rest" ? { wait: "1 day" } : {}, () => void executed.push(name));
      }
    }
    return Chain;
  };
  const [One, Two] = [define(["one", "rest"]), define(["one", "two", "rest", "three"])];
  const w = await world();
  const old = await w.worker([One]);
  const run = await w.pawl.start(One);
  w.clock.moveTo((await old.settle()) as number);
  await old.worker.stop();
  await (await w.worker([Two])).settle();
  expect(await run.status()).toBe("completed");
  // A chain only moves forward: a step that was inserted before the run's position does not run, and that is recorded.
  expect(executed).toEqual(["one", "rest", "three"]);
  const changes = (await run.history()).filter(({ type }) => type === "shape.changed");
  expect(changes).toMatchObject([{ data: { passedSteps: ["two"] } }]);
});
