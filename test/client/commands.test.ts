/**
 * Commands on a parked run act immediately, in the caller's own transaction: none of these tests has a worker running.
 */

import { PauseError, type RunHandle, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { type World, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const sleeper = workflow("sleeper", async (ctx) => {
  await ctx.sleep("nap", "1 day");
  return "woken";
});
const waiter = workflow("waiter", (ctx) => ctx.waitForSignal("go"));
const stuck = workflow("stuck", async (ctx) => [
  await ctx.step("call", () => {
    throw new PauseError("ask somebody");
  }),
]);
const flaky = workflow("flaky", async (ctx) => [
  await ctx.step("call", () => {
    throw new Error("again");
  }),
]);

const all = [sleeper, waiter, stuck, flaky];

async function parked(
  kind: StoreKind,
  definition: (typeof all)[number],
): Promise<{ w: World; run: RunHandle<any, any>; work: () => Promise<number | null> }> {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const worker = await w.worker(all);
  const run = await w.pawl.start(definition as typeof sleeper);
  await worker.settle();
  await worker.worker.stop();
  return { w, run, work: async () => (await w.worker(all)).settle() };
}

async function unchanged(run: RunHandle<any, any>, command: () => Promise<void>): Promise<void> {
  const before = { info: await run.get(), log: await logOf(run) };
  expect(await errorOf(command())).toMatchObject({ code: "INVALID_STATE" });
  expect({ info: await run.get(), log: await logOf(run) }).toEqual(before);
}

forMemoryAnd("mysql", (kind) => {
  test("pause and resume take effect immediately, and a sleep keeps its original end", async () => {
    const { w, run, work } = await parked(kind, sleeper);
    const begin = w.clock.read();
    await run.pause("a moment");
    expect(await run.status()).toBe("paused");
    expect((await run.history()).at(-1)).toMatchObject({ type: "run.paused", data: { reason: "a moment" } });
    w.clock.moveTo(begin + 7_200_000);
    await run.resume();
    expect(await run.status()).toBe("waiting");
    expect(await work()).toBe(begin + 86_400_000);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a sleep that ends during a pause continues only after the resume", async () => {
    const { w, run, work } = await parked(kind, sleeper);
    await run.pause();
    w.clock.moveTo(w.clock.read() + 3 * 86_400_000);
    expect(await work()).toBeNull();
    expect(await run.status()).toBe("paused");
    await run.resume();
    await work();
    expect(await run.result({ timeout: "100s" })).toBe("woken");
  });

  test("cancel takes effect immediately and is final; a second cancel is a no-op", async () => {
    const { w, run } = await parked(kind, sleeper);
    await run.cancel("not needed");
    const { status, finishedAt, error } = await run.get();
    expect({ status, error: error?.message }).toMatchObject({
      status: "canceled",
      error: expect.stringContaining("not needed"),
    });
    expect(finishedAt).not.toBeNull();
    const log = await logOf(run);
    await run.cancel("again");
    expect(await logOf(run)).toEqual(log);
    for (const command of [() => run.pause(), () => run.resume(), () => run.skip(), () => run.signal("go")])
      await unchanged(run, command);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("skip passes over a step that is stuck, and over one that waits for its next attempt", async () => {
    for (const definition of [stuck, flaky]) {
      const { run, work } = await parked(kind, definition);
      await run.skip();
      expect(await logOf(run)).toContain("step.skipped call");
      await work();
      expect(await run.result({ timeout: "100s" })).toEqual([undefined]);
    }
  });

  test("a signal to a parked run is written to its log immediately", async () => {
    const { w, run, work } = await parked(kind, waiter);
    await run.signal("go", { by: "me" }, { key: "k" });
    await run.signal("go", { by: "you" }, { key: "k" });
    expect((await logOf(run)).filter((line) => line.startsWith("signal") || line.startsWith("wait.completed"))).toEqual(
      ["signal.received", "wait.completed signal:go"],
    );
    expect((await w.pawl.verify()).differences).toEqual([]);
    await work();
    expect(await run.result({ timeout: "100s" })).toEqual({ by: "me" });
  });

  test("commands that are invalid in the current state are refused and change nothing", async () => {
    const { run } = await parked(kind, sleeper);
    await unchanged(run, () => run.resume());
    await unchanged(run, () => run.resume({ output: 1 }));
    await unchanged(run, () => run.skip());
    await run.pause();
    await unchanged(run, () => run.pause());
    await unchanged(run, () => run.skip());
    await unchanged(run, () => run.resume({ output: 1 }));
  });

  test("commands for a run that does not exist throw a RunNotFoundError", async () => {
    const { w } = await parked(kind, sleeper);
    const missing = w.pawl.run("01900000-0000-7000-8000-000000000000");
    const questions = [
      () => missing.get(),
      () => missing.status(),
      () => missing.history(),
      () => missing.executions(),
      () => missing.result({ timeout: "100s" }),
    ];
    const commands = [
      () => missing.cancel(),
      () => missing.signal("x"),
      () => missing.pause(),
      () => missing.resume(),
      () => missing.skip(),
    ];
    for (const ask of [...questions, ...commands])
      expect(await errorOf(ask())).toMatchObject({ code: "RUN_NOT_FOUND" });
  });
});

describe("a run that has not started", () => {
  test("can be paused, resumed, signaled and canceled", async () => {
    const w = await world();
    const run = await w.pawl.start(waiter);
    expect(await run.status()).toBe("pending");
    await run.pause();
    expect(await run.status()).toBe("paused");
    const worker = await w.worker(all);
    await worker.settle();
    expect(await run.status()).toBe("paused");
    await run.signal("go", 1);
    expect(await run.status()).toBe("paused");
    await run.resume();
    await worker.settle();
    expect(await run.result()).toBe(1);
    await worker.worker.stop();
    const other = await w.pawl.start(waiter);
    await other.cancel();
    expect(await other.get()).toMatchObject({ status: "canceled", startedAt: null });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("a paused run", () => {
  test("can be canceled", async () => {
    const w = await world();
    const run = await w.pawl.start(waiter);
    await run.pause();
    await run.cancel("gone");
    expect(await run.status()).toBe("canceled");
  });

  test("reports since when and why it is paused in get()", async () => {
    const w = await world();
    const worker = await w.worker(all);
    const run = await w.pawl.start(stuck);
    await worker.settle();
    expect(JSON.stringify(await run.get())).toContain("ask somebody");
  });
});

describe("a run that is being executed", () => {
  test("refuses a resume, and continues", async () => {
    const begun = gate();
    const finish = gate();
    const busy = workflow("busy", (ctx) =>
      ctx.step("busy", async () => {
        begun.open();
        await finish.opened;
        return "done";
      }),
    );
    const w = await world();
    await w.worker([busy]);
    const run = await w.pawl.start(busy);
    await begun.opened;
    expect(await run.status()).toBe("running");
    expect(await errorOf(run.resume())).toMatchObject({ code: "INVALID_STATE" });
    expect(await errorOf(run.skip())).toMatchObject({ code: "INVALID_STATE" });
    finish.open();
    expect(await run.result({ timeout: "100s" })).toBe("done");
  });
});

describe("many commands at once", () => {
  test("50 signals with 50 keys, sent concurrently by two clients, each arrive once", async () => {
    const collector = workflow("collector", async (ctx) => {
      const got: unknown[] = [];
      while (got.length < 50) got.push(await ctx.waitForSignal("n"));
      return got;
    });
    const w = await world();
    const run = await w.pawl.start(collector);
    const { pawl, settle } = await w.worker([collector]);
    await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        (n % 2 === 0 ? run : pawl.run(run.id)).signal("n", n >> 1, { key: `k${n >> 1}` }),
      ),
    );
    await settle();
    const got = (await run.result({ timeout: "100s" })) as number[];
    expect(got.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  test("a cancel that races with the completion of the run leaves one outcome", async () => {
    const quick = workflow("quick", (ctx) => ctx.step("a", () => 1));
    const w = await world();
    const { settle } = await w.worker([quick]);
    for (let round = 0; round < 20; round += 1) {
      const run = await w.pawl.start(quick);
      const canceled = await run.cancel().then(
        () => true,
        () => false,
      );
      await settle();
      const endings = (await logOf(run)).filter((line) => /run\.(completed|canceled|failed)/.test(line));
      expect(endings).toHaveLength(1);
      if (!canceled) expect(endings).toEqual(["run.completed"]);
    }
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("commands that race with the worker", () => {
  test("a skip during an attempt that then fails skips the step, also during the last one", async () => {
    const begun = gate();
    const finish = gate();
    let executions = 0;
    const crossing = workflow("crossing", async (ctx) => {
      const fails = async ({ attempt }: { attempt: number }) => {
        executions += 1;
        if (attempt === 1) throw new Error("again");
        begun.open();
        await finish.opened;
        throw new Error("and again");
      };
      const value = await ctx.step("call", fails, { retry: { attempts: 2 } });
      await ctx.sleep("replay", "1h");
      return [value];
    });
    const w = await world();
    const worker = await w.worker([crossing]);
    const run = await w.pawl.start(crossing);
    w.clock.moveTo((await worker.settle()) as number);
    const settled = worker.settle();
    await begun.opened;
    await run.skip();
    await run.signal("later");
    await until(async () => (await logOf(run)).some((line) => line.startsWith("signal.received")));
    finish.open();
    await settled;
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    expect(await run.result({ timeout: "100s" })).toEqual([undefined]);
    expect(executions).toBe(2);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a skip during an attempt is kept for the next owner if the worker dies", async () => {
    const begun = gate();
    const dying = workflow("dying", async (ctx) => {
      const value = await ctx.step("call", ({ attempt }) => {
        if (attempt === 1) throw new Error("again");
        begun.open();
        return new Promise(() => {});
      });
      return [value];
    });
    const w = await world();
    const first = await w.worker([dying]);
    const run = await w.pawl.start(dying);
    w.clock.moveTo((await first.settle()) as number);
    void first.settle();
    await begun.opened;
    await run.skip();
    await run.signal("later");
    await until(async () => (await logOf(run)).some((line) => line.startsWith("signal.received")));
    await first.kill();
    const second = await w.worker([dying]);
    for (let due = await second.settle(); due !== null; due = await second.settle()) w.clock.moveTo(due);
    expect(await run.result({ timeout: "100s" })).toEqual([undefined]);
  });

  test("a pause does not delay a cancellation that is being sent to the children", async () => {
    const child = workflow("child", (ctx) => ctx.sleep("nap", "1 day"));
    const parent = workflow("parent", (ctx) => ctx.run(child, undefined));
    const w = await world();
    const first = await w.worker([parent, child]);
    const run = await w.pawl.start(parent);
    await first.settle();
    await first.worker.stop();
    await run.cancel();
    expect(await errorOf(run.pause())).toMatchObject({ code: "INVALID_STATE" });
    await (await w.worker([parent, child])).settle();
    expect((await w.pawl.runs()).runs.map(({ status }) => status)).toEqual(["canceled", "canceled"]);
  });
});
