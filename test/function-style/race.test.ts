import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { logOf } from "../support/run-checks.js";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

describe("ctx.race", () => {
  test("returns the name and value of the first arm to end", async () => {
    const wf = workflow("first", async (ctx) =>
      ctx.race({ late: ctx.sleep("late", "2 days"), early: ctx.sleep("early", "1 day").then(() => "early bird") }),
    );
    expect(await outputOf(wf, undefined)).toEqual({ name: "early", value: "early bird" });
  });

  test("withdraws a sleep that lost: the run neither waits for it nor wakes because of it", async () => {
    const wf = workflow("sleep-lost", async (ctx) => {
      const winner = await ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("late", "30 days") });
      await ctx.waitForSignal("then");
      return winner.name;
    });
    const w = await world();
    const worker = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await worker.settle();
    await run.signal("paid");
    expect(await worker.settle()).toBeNull();
    expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["then"] }]);
    expect(await logOf(run)).toContain("wait.withdrawn late");
    await run.signal("then");
    await worker.settle();
    expect(await run.result()).toBe("paid");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("withdraws a wait that lost: a signal that arrives later goes to the next wait", async () => {
    const wf = workflow("wait-lost", async (ctx) => {
      const winner = await ctx.race({ go: ctx.waitForSignal("go"), late: ctx.sleep("late", "1 day") });
      await ctx.sleep("then", "1 day");
      return [winner.name, await ctx.waitForSignal("go", { timeout: "1 day" })];
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.advance("36 hours");
    await run.signal("go", "for the second wait");
    await t.speedrun(run);
    expect(await run.result()).toEqual(["late", "for the second wait"]);
  });

  test("does not consume a signal whose wait lost against another signal", async () => {
    const wf = workflow("two-signals", async (ctx) => {
      const winner = await ctx.race({ a: ctx.waitForSignal("a"), b: ctx.waitForSignal("b") });
      return [winner, await ctx.waitForSignal("b", { timeout: "1 day" })];
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await first.settle();
    await first.kill();
    await run.signal("a", 1);
    await run.signal("b", 2);
    const second = await w.worker([wf]);
    for (let due = await second.settle(); due !== null; due = await second.settle()) w.clock.moveTo(due);
    expect(await run.result()).toEqual([{ name: "a", value: 1 }, 2]);
  });

  test("has the same winner on replay, although both arms have a result by then", async () => {
    const winners: string[] = [];
    const wf = workflow("replayed", async (ctx) => {
      const { name } = await ctx.race({
        b: ctx.sleep("b", "2h"),
        a: ctx.sleep("a", "1h"),
        c: ctx.waitForSignal("c", { timeout: "3h" }),
      });
      winners.push(name);
      await ctx.sleep("later", "1 day");
      await ctx.sleep("even_later", "1 day");
      return name;
    });
    expect(await outputOf(wf, undefined)).toBe("a");
    expect(new Set(winners)).toEqual(new Set(["a"]));
    expect(winners.length).toBeGreaterThan(1);
  });

  test("fails when the first arm to end fails, and withdraws the others", async () => {
    const wf = workflow("failing-arm", async (ctx) => {
      const error = await ctx
        .race({
          broken: ctx.step(
            "broken",
            () => {
              throw new Error("broken");
            },
            { retry: { attempts: 1 } },
          ),
          late: ctx.sleep("late", "1 day"),
        })
        .catch((thrown: Error) => thrown.message);
      await ctx.waitForSignal("end");
      return error;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["end"] }]);
    await run.signal("end");
    await t.settle();
    expect(await run.result()).toBe("broken");
  });

  test("without arms is refused", async () => {
    const wf = workflow("armless", async (ctx) => ctx.race({}).catch((error: { code: string }) => error.code));
    expect(await outputOf(wf, undefined)).toBe("INVALID_INPUT");
  });
});

describe("Promise.race and Promise.all over ctx", () => {
  test("resolve in the same order live and on replay: steps, timers and signals", async () => {
    const orders: string[][] = [];
    const slow = gate();
    const wf = workflow("ordered", async (ctx) => {
      const order: string[] = [];
      orders.push(order);
      const note = (name: string) => () => void order.push(name);
      const first = await Promise.race([
        ctx.step("slow", () => slow.opened).then(() => "slow"),
        ctx.sleep("timer", "1h").then(() => "timer"),
        ctx.waitForSignal("go").then(() => "signal"),
      ]);
      order.push(first);
      await Promise.all([
        ctx.step("x", () => 1).then(note("x")),
        ctx.sleep("two", "2h").then(note("two")),
        ctx.sleep("one", "1h").then(note("one")),
        ctx.waitForSignal("late").then(note("late")),
        ctx.step("y", async () => 2).then(note("y")),
      ]);
      await ctx.sleep("replay", "1 day");
      return order;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("go");
    await run.signal("late");
    slow.open();
    await t.speedrun(run);
    const result = await run.result();
    expect(orders.length).toBeGreaterThan(2);
    for (const order of orders) expect(result.slice(0, order.length)).toEqual(order);
    expect(result.slice(-2)).toEqual(["one", "two"]);
  });

  test("a race of a signal and a sleep has the same winner after a crash", async () => {
    const wf = workflow("crossing", async (ctx) => {
      const winner = await Promise.race([
        ctx.waitForSignal("go").then(() => "signal"),
        ctx.sleep("nap", "1h").then(() => "sleep"),
      ]);
      const after = await ctx.step(`after_${winner}`, () => winner);
      await ctx.sleep("rest", "1h");
      return after;
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    const due = (await first.settle()) as number;
    await run.signal("go");
    w.clock.moveTo(due);
    await first.settle();
    await first.kill();
    const second = await w.worker([wf]);
    for (let next = await second.settle(); next !== null; next = await second.settle()) w.clock.moveTo(next);
    expect(await run.result()).toBe("signal");
    expect((await logOf(run)).filter((line) => line.includes("after_"))).toEqual(["step.completed after_signal"]);
  });

  test("a hundred parallel steps each run once and resolve in one order", async () => {
    const executed = new Map<number, number>();
    const orders: number[][] = [];
    const wf = workflow("wide", async (ctx) => {
      const order: number[] = [];
      orders.push(order);
      await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          ctx
            .step(`s${n}`, async () => {
              executed.set(n, (executed.get(n) ?? 0) + 1);
              await new Promise((resolve) => setTimeout(resolve, (n * 7) % 5));
            })
            .then(() => order.push(n)),
        ),
      );
      await ctx.sleep("replay", "1h");
      return order;
    });
    const result = await outputOf(wf, undefined);
    expect([...executed.values()]).toEqual(Array(100).fill(1));
    expect(orders).toHaveLength(2);
    expect(orders[0]).toEqual(result);
  });
});
