/** Steps run when their dependencies have completed, in parallel, once each. */
import { branch, graph, PermanentError, type StepContext, step } from "pawl";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { everyStore, forEachStore, testDatabase } from "../support/databases.js";
import { logOf } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});
const note = <const Name extends string>(name: Name) =>
  step(name, () => {
    executed.push(name);
    return name;
  });

interface Order {
  readonly total: number;
}
const validate = step("validate", (ctx: StepContext<Order>) => ({ total: ctx.input.total }));
const fraud = step("fraud", (ctx) => ({ score: ctx.output(validate).total / 1_000 }));
const charge = step("charge", async (ctx) => {
  const { total } = ctx.output(validate);
  const id = await ctx.step("authorize", () => `tx-${total}`);
  await ctx.sleep("settle", "1 day");
  return { id, score: ctx.output(fraud).score };
});
const manual = step("manual", async (ctx) => (await ctx.waitForSignal<string>("decision")) ?? "nobody");
const auto = step("auto", () => "automatic");
const ship = step("ship", (ctx) => ({
  charged: ctx.output(charge).id,
  by: ctx.maybeOutput(manual) ?? ctx.output(auto),
}));
const order = graph("order-processing", [
  validate,
  fraud.after(validate),
  charge.after(validate, fraud),
  branch("route", (ctx) => (ctx.output(fraud).score > 0.9 ? "review" : "auto"), {
    review: [manual],
    auto: [auto],
  }).after(fraud),
  ship.after(charge, manual, auto),
]);

forEachStore((kind) => {
  test("an order runs through its graph, its branch is recorded, and the tables agree with the log", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker([order]);
    const [small, large] = [await w.pawl.start(order, { total: 100 }), await w.pawl.start(order, { total: 2_000 })];
    for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    expect(await small.result()).toEqual({ charged: "tx-100", by: "automatic" });
    expect(await large.status()).toBe("waiting");
    await large.signal("decision", "ada");
    await settle();
    expect(await large.result()).toEqual({ charged: "tx-2000", by: "ada" });
    const executions = async (run: typeof small) =>
      (await run.executions()).map(({ step: name, outcome }) => `${name} ${outcome}`).sort();
    expect(await executions(small)).toEqual([
      "auto success",
      "charge success",
      "charge/authorize success",
      "fraud success",
      "manual skipped_by_condition",
      "route success",
      "ship success",
      "validate success",
    ]);
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });
}, everyStore);

test("crashes at every commit do not change the result", async () => {
  const t = await start(order);
  const report = await t.crashTest(
    order,
    { total: 5_000 },
    { drive: (run) => run.signal("decision", "ada", { key: "1" }).catch(() => {}) },
  );
  expect(report.output).toEqual({ charged: "tx-5000", by: "ada" });
});

describe("steps", () => {
  test("that do not depend on each other are in flight together; others wait", async () => {
    const [first, second] = [gate(), gate()];
    const [a, b] = [step("a", () => first.opened), step("b", () => second.opened)];
    const both = graph("both", [a, b, note("c").after(a, b), note("d").after(a)]);
    const t = await start(both);
    const run = await t.pawl.start(both);
    const settled = t.settle();
    first.open();
    await until(() => executed.length > 0);
    expect(executed).toEqual(["d"]);
    second.open();
    await settled;
    expect(executed).toEqual(["d", "c"]);
    expect(await run.status()).toBe("completed");
  });

  test("are limited by the graph's concurrency", async () => {
    let [running, maxRunning] = [0, 0];
    const steps = Array.from({ length: 10 }, (_, n) =>
      step(`s${n}`, async () => {
        running += 1;
        maxRunning = Math.max(maxRunning, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      }),
    );
    for (const [concurrency, expected] of [
      [3, 3],
      [undefined, 10],
    ] as const) {
      maxRunning = 0;
      const limited = graph("limited", steps, concurrency === undefined ? {} : { concurrency });
      const t = await start(limited);
      await t.speedrun(await t.pawl.start(limited));
      expect(maxRunning).toBe(expected);
    }
  });

  test("that have completed keep their results when another step fails; those in flight finish; nothing new starts", async () => {
    const slow = gate();
    const bad = step("bad", () => {
      throw new PermanentError("no good");
    });
    const sibling = step("sibling", async () => {
      await slow.opened;
      executed.push("sibling");
    });
    const failing = graph("failing", [
      note("done"),
      bad,
      sibling,
      note("after_sibling").after(sibling),
      note("never").after(bad),
    ]);
    const t = await start(failing);
    const run = await t.pawl.start(failing);
    const settled = t.settle();
    await until(async () => (await logOf(run)).includes("step.failed bad"));
    expect(await run.status()).toBe("running");
    slow.open();
    await settled;
    expect(executed).toEqual(["done", "sibling"]);
    expect(await errorOf(run.result())).toMatchObject({ cause: { message: "no good" } });
    expect(await t.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("are retried as the step declares, or else as the graph declares", async () => {
    const attempts = (name: string, options = {}) =>
      step(
        name,
        (ctx) => {
          executed.push(`${name} ${ctx.attempt}`);
          throw new Error("again");
        },
        options,
      );
    const once = graph("once", [attempts("a", { retry: { attempts: 2 } }), attempts("b")], { retry: { attempts: 3 } });
    const t = await start(once);
    await t.speedrun(await t.pawl.start(once));
    expect(executed.filter((line) => line.startsWith("a"))).toHaveLength(2);
    expect(executed.filter((line) => line.startsWith("b"))).toHaveLength(3);
  });
});

describe("the output", () => {
  test("of a run is that of its last step; of several last steps, an object by name", async () => {
    const [a, b, c] = [note("a"), note("b"), note("c")];
    const one = graph("one", [a, b.after(a)]);
    const several = graph("several", [a, b.after(a), c.after(a)]);
    const t = await start(one, several);
    const runs = [await t.pawl.start(one), await t.pawl.start(several)] as const;
    await t.settle();
    expect(await runs[0].result()).toBe("b");
    expect(await runs[1].result()).toEqual({ b: "b", c: "c" });
  });

  test("of a step that does not come before is not available, and the error says what to do", async () => {
    const a = note("a");
    const b = step("b", (ctx) => ctx.output(a));
    const wrong = graph("wrong", [a, b], { retry: { initial: 0 } });
    const t = await start(wrong);
    const run = await t.pawl.start(wrong);
    await t.settle();
    expect((await errorOf(run.result())).cause.message).toContain("which does not precede it; add .after(a)");
    expect((await run.executions()).filter(({ step: name }) => name === "b")).toMatchObject([
      { attempt: 1, state: "failed", outcome: "failed_by_exception" },
    ]);
  });

  test("of a skipped step is an error, or undefined if the step allows it", async () => {
    const [left, right] = [note("left"), note("right")];
    const join = step("join", (ctx) => [ctx.maybeOutput(left), ctx.maybeOutput(right), ctx.output(left)]);
    const skipping = graph(
      "skipping",
      [branch("way", () => "right" as const, { left: [left], right: [right] }), join.after(left, right)],
      { retry: { attempts: 1 } },
    );
    const t = await start(skipping);
    const run = await t.pawl.start(skipping);
    await t.settle();
    expect((await errorOf(run.result())).cause.message).toContain('Step "left" was skipped');
  });
});

describe("a branch", () => {
  test("chooses once, whatever happens afterwards", async () => {
    let choices = 0;
    const [left, right] = [note("left"), note("right")];
    const wait = step("wait", (ctx) => ctx.sleep("nap", "1 day"));
    const once = graph("chooses", [
      branch("way", () => (choices++ === 0 ? "left" : "right"), { left: [left, wait.after(left)], right: [right] }),
    ]);
    const t = await start(once);
    await t.speedrun(await t.pawl.start(once));
    expect([choices, ...executed]).toEqual([1, "left"]);
  });

  test("skips all steps that depend only on skipped steps, and a join still runs", async () => {
    const [a, b, other, join] = [note("a"), note("b"), note("other"), note("join")];
    const deep = graph("deep", [
      branch("way", () => "right" as const, { left: [a, b.after(a)], right: [other] }),
      note("behind").after(b),
      join.after(b, other),
    ]);
    const t = await start(deep);
    const run = await t.pawl.start(deep);
    await t.speedrun(run);
    expect(executed).toEqual(["other", "join"]);
    expect(await run.result()).toEqual({ join: "join" });
    const skipped = (await run.executions()).filter(({ state }) => state === "skipped");
    expect(skipped.map(({ step: name }) => name).sort()).toEqual(["a", "b", "behind"]);
  });

  test("that chooses an unknown case fails the run", async () => {
    const wrong = graph("wrong", [branch("way", () => "up" as never, { left: [note("left")] })]);
    const t = await start(wrong);
    const run = await t.pawl.start(wrong);
    await t.settle();
    expect((await errorOf(run.result())).cause.message).toContain('chose "up", which is not one of its cases: left');
  });
});

test("a chain of 2,000 recorded steps is replayed without a stack 2,000 calls deep", async () => {
  const steps: ReturnType<typeof note>[] = [];
  for (let n = 0; n < 2_000; n += 1) {
    const next = step(`s${n}`, () => `s${n}`);
    const last = steps.at(-1);
    steps.push((last === undefined ? next : next.after(last)) as never);
  }
  const end = step("end", (ctx) => ctx.sleep("nap", "1 day"));
  const long = graph("long", [...steps, end.after(steps.at(-1) as never)]);
  const t = await start(long);
  const run = await t.pawl.start(long);
  await t.speedrun(run);
  expect(await run.status()).toBe("completed");
});
