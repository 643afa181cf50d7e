/**
 * Hints that arrive without a pause make the worker read a run's inbox again and again. The run must advance
 * nevertheless.
 */
import { setImmediate as macrotask } from "node:timers/promises";
import { Pawl, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Hint, Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { logOf } from "../support/run-checks.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** The limit in macrotasks: a hundred times as many as a run needs to be parked. */
const maxHints = 2_000;

/** Simulates a store on a server: reading an inbox takes a few macrotasks. `sendHint` passes a hint to the watchers. */
function slowStore() {
  const inner = new MemoryStore();
  const watchers = new Set<(hint: Hint) => void>();
  const inbox: Store["inbox"] = async (runIds) => {
    for (let passed = 0; passed < 3; passed += 1) await macrotask();
    return inner.inbox(runIds);
  };
  const watch: Store["watch"] = (watcher) => {
    const unwatch = inner.watch(watcher);
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
      unwatch();
    };
  };
  const store: Store = new Proxy(inner as Store, {
    get(target, name) {
      if (name === "inbox") return inbox;
      if (name === "watch") return watch;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const sendHint = (hint: Hint) => {
    for (const watcher of watchers) watcher(hint);
  };
  const isOwned = async (runId: string) => (await inner.tasks([runId]))[0]?.state === "owned";
  return { store, sendHint, isOwned };
}

/** Starts a run that is executing its first step and will sleep for a day after it. */
async function startExecuting() {
  const { store, sendHint, isOwned } = slowStore();
  const pawl = new Pawl(store, silent);
  onTestFinished(() => pawl.close());
  const finish = gate();
  const napping = workflow("napping", async (ctx) => {
    await ctx.step("work", () => finish.opened);
    await ctx.sleep("nap", "1 day");
  });
  const worker = await pawl.worker({ workflows: [napping], poll: Number.POSITIVE_INFINITY }).start();
  const run = await pawl.start(napping);
  await until(async () => (await logOf(run)).includes("step.started work"));
  /** Sends a hint in every macrotask until the worker has released the run and its log contains this line. */
  const hintUntil = async (line: string) => {
    const isReached = async () => !(await isOwned(run.id)) && (await logOf(run)).includes(line);
    for (let hints = 0; hints < maxHints && !(await isReached()); hints += 1) {
      sendHint({ kind: "messages", runIds: [run.id] });
      await macrotask();
    }
    expect(await logOf(run)).toContain(line);
    expect(await isOwned(run.id)).toBe(false);
  };
  return { run, worker, release: () => finish.open(), hintUntil };
}

describe("while hints about its run arrive without a pause", () => {
  test("a worker parks a run that starts to sleep", async () => {
    const { run, release, hintUntil } = await startExecuting();
    release();
    await hintUntil("timer.started nap");
    expect(await run.status()).toBe("waiting");
  });

  test("a worker parks a run that was paused during its step", async () => {
    const { run, release, hintUntil } = await startExecuting();
    await run.pause();
    release();
    await hintUntil("run.paused");
    expect(await run.status()).toBe("paused");
  });

  test("a worker replays the code of a run that was paused and resumed during its step", async () => {
    const { run, release, hintUntil } = await startExecuting();
    await run.pause();
    await run.resume();
    release();
    await hintUntil("timer.started nap");
    expect(await run.status()).toBe("waiting");
  });

  test("a worker cancels a run that was canceled during its step", async () => {
    const { run, release, hintUntil } = await startExecuting();
    await run.cancel();
    release();
    await hintUntil("run.canceled");
    expect(await run.status()).toBe("canceled");
  });
});

test("a worker that is driven by two callers at the same time parks a run that was paused during its step", async () => {
  const { run, worker, release } = await startExecuting();
  const idle = [worker.runUntilIdle(), worker.runUntilIdle()];
  await run.pause();
  release();
  await Promise.all(idle);
  expect(await run.status()).toBe("paused");
});
