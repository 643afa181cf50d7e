/** The invariants of a run, each under its name. */
import { branch, graph, type StepContext, step } from "pawl";
import { beforeEach, describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import { dataOf, newEvent } from "../../src/core/run/event.js";
import { fold } from "../../src/core/run/fold.js";
import type { StepOp } from "../../src/core/run/state.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { start, world } from "../support/virtual-worlds.js";

let executed: string[] = [];
let choices = 0;
beforeEach(() => {
  executed = [];
  choices = 0;
});

const count = step("count", (ctx: StepContext<{ n: number }>) => {
  executed.push("count");
  return { n: ctx.input.n, drawn: executed.length };
});
const nap = step("nap", (ctx) => ctx.sleep("rest", "1 day"));
const [even, odd] = [step("even", () => void executed.push("even")), step("odd", () => void executed.push("odd"))];
const ask = step("ask", async (ctx) => {
  executed.push("ask");
  return ctx.waitForSignal<string>("answer");
});
const parity = graph("parity", [
  count,
  branch(
    "which",
    (ctx) => {
      choices += 1;
      return ctx.output(count).n % 2 === 0 ? "even" : "odd";
    },
    { even: [even], odd: [odd] },
  ).after(count),
  nap.after(even, odd),
  ask.after(nap),
]);

forMemoryAnd("postgres", (kind) => {
  const newWorld = async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    return world(kind, database.url);
  };

  describe("event ordering", () => {
    test("events within a run are strictly ordered by sequence, and sequence numbers are gapless", async () => {
      const w = await newWorld();
      const { settle } = await w.worker([parity]);
      const run = await w.pawl.start(parity, { n: 2 });
      w.clock.moveTo((await settle()) as number);
      await settle();
      await run.signal("answer", "x");
      await settle();
      const seqs = (await run.history()).map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
      expect(seqs.length).toBeGreaterThan(8);
    });

    test("append fails if the sequence does not follow the last one", async () => {
      const w = await newWorld();
      const run = await w.pawl.start(parity, { n: 2 });
      const park = {
        kind: "park",
        status: "waiting",
        waiting: null,
        startedAt: "now",
        wakeAt: null,
        wakeInMs: null,
      } as const;
      const none: readonly never[] = [];
      const remaining = {
        drainedInboxIds: none,
        newChildren: none,
        messages: none,
        releasedChildIds: none,
        cursors: none,
      };
      const append = (afterSeq: number) =>
        w.store.commit({
          fence: null,
          starts: [],
          transitions: [{ runId: run.id, afterSeq, events: [newEvent("run.started", {})], next: park, ...remaining }],
        });
      expect(await append(3)).toMatchObject({ kind: "conflict" });
      expect(await append(0)).toMatchObject({ kind: "committed" });
      expect(await append(0)).toMatchObject({ kind: "conflict" });
    });
  });

  describe("transactional consistency", () => {
    test("events and tasks are committed together: none is lost and none is orphaned, wherever a worker dies", async () => {
      const w = await newWorld();
      const first = await w.worker([parity]);
      const run = await w.pawl.start(parity, { n: 3 });
      w.clock.moveTo((await first.settle()) as number);
      await first.kill();
      const second = await w.worker([parity]);
      await second.settle();
      await run.signal("answer", "y");
      await second.settle();
      expect(await run.result()).toBe("y");
      expect(await w.store.tasks([run.id])).toEqual([]);
      expect(await w.pawl.verify()).toMatchObject({ differences: [] });
    });
  });
});

describe("replay determinism", () => {
  test("the same events produce the same outputs; branch decisions are recorded, not evaluated again; completed steps are skipped", async () => {
    const t = await start(parity);
    const run = await t.pawl.start(parity, { n: 3 });
    await t.advance("1 day");
    await run.signal("answer", "z");
    await t.settle();
    expect(await run.result()).toBe("z");
    expect([choices, ...executed.filter((name) => name !== "ask")]).toEqual([1, "count", "odd"]);
  });
});

describe("type safety", () => {
  test("step outputs are typed at compile time, and dependencies cannot name a step that does not exist", () => {
    const typed = step("typed", (ctx) => ctx.output(count).n);
    expectTypeOf(typed.fn).returns.toEqualTypeOf<number | Promise<number>>();
    // @ts-expect-error: a step comes after steps, not after names
    expect(() => typed.after("count")).toThrow();
    expect(() => graph("g", [typed.after(count)])).toThrow("not in the graph");
  });
});

describe("DAG integrity", () => {
  test("the structure is static, has no cycles, and every dependency is satisfied before a step is executed", async () => {
    expect(Object.isFrozen(parity)).toBe(true);
    expect(() => graph("g", [even.after(odd), odd.after(even)])).toThrow("form a cycle");
    const t = await start(parity);
    const run = await t.pawl.start(parity, { n: 2 });
    await t.settle();
    expect(executed).toEqual(["count", "even"]);
    expect((await run.nodes()).find(({ name }) => name === "ask")?.state).toBe("pending");
  });
});

describe("idempotency", () => {
  test("a signal is delivered once, a retry skips completed steps, and canceling a canceled run changes nothing", async () => {
    const t = await start(parity);
    const run = await t.pawl.start(parity, { n: 2 });
    await t.advance("1 day");
    await run.cancel("enough");
    await run.cancel("again");
    expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "enough" } });
    const second = await t.pawl.start(parity, { n: 2 });
    await t.advance("1 day");
    await second.signal("answer", "first", { key: "k" });
    await second.signal("answer", "twice", { key: "k" }).catch(() => {});
    await t.settle();
    expect(await second.result()).toBe("first");
    expect((await second.history()).filter(({ type }) => type === "signal.received")).toHaveLength(1);
  });
});

describe("output immutability", () => {
  test("a recorded output never changes: the first one stands, even against an operator's", async () => {
    const t = await start(parity);
    const run = await t.pawl.start(parity, { n: 2 });
    await t.settle();
    await run.pause();
    await run.resume({ output: "by hand" });
    await t.settle();
    const first = (await run.history()).find(({ type, node }) => type === "step.completed" && node === "count");
    expect(first?.data.output).toEqual({ n: 2, drawn: 1 });
    // The open step got the operator's output, and of two results for one step the first one stands.
    const outputOf = (name: string, events: readonly ReturnType<typeof newEvent>[]) => {
      const state = fold(events.map((one, index) => ({ ...one, seq: index + 1, at: 0 })));
      return dataOf(state.ops.get(name) as StepOp, "step.completed").output;
    };
    const completed = (output: string) => newEvent("step.completed", { node: "a", attempt: 1 }, {}, { output });
    expect(outputOf("a", [completed("1"), completed("2")])).toBe(1);
    expect((await run.nodes()).find(({ name }) => name === "nap")?.state).toBe("completed");
  });
});
