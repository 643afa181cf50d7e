/** A wait loses a race at the moment its signal arrives: the signal is kept for the next wait. */
import { Pawl, Workflow, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { Batch, Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { logOf } from "../support/run-checks.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

const writes = (batch: Batch, wanted: string) =>
  batch.transitions.some(({ events }) => events.some(({ type }) => type === wanted));

/** Calls `before` with every batch before it is written. */
function watchedStore(before: (batch: Batch) => Promise<void> | undefined): Store {
  return new Proxy(new MemoryStore() as Store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "commit")
        return async (batch: Batch) => {
          await before(batch);
          return target.commit(batch);
        };
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a signal that is matched while the withdrawal of its wait is being written goes to the next wait", async () => {
  const decided = gate();
  let isWithdrawing = false;
  const store = watchedStore((batch) => {
    if (!writes(batch, "wait.withdrawn")) return undefined;
    isWithdrawing = true;
    return decided.opened;
  });
  const pawl = new Pawl(store, silent);
  onTestFinished(() => pawl.close());
  const wf = workflow("racing", async (ctx) => {
    const stop = gate();
    const { name } = await ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("late", 1) });
    // This step keeps the turn alive, so that the run is not read again from its log.
    const busy = ctx.step("busy", () => stop.opened);
    const second = await ctx.waitForSignal("paid", { timeout: "365 days" });
    stop.open();
    await busy;
    return [name, second];
  });
  const worker = await pawl.worker({ workflows: [wf], poll: Number.POSITIVE_INFINITY }).start();
  const run = await pawl.start(wf);
  await until(() => isWithdrawing);
  await run.signal("paid", "just too late");
  const idle = worker.runUntilIdle();
  // The inbox has been read and the signal has been matched; that decision waits behind the withdrawal.
  for (let passed = 0; passed < 20; passed += 1) await new Promise(setImmediate);
  decided.open();
  expect(await run.result({ timeout: "100s" })).toEqual(["late", "just too late"]);
  await idle;
  const log = await logOf(run);
  expect(log.filter((line) => /^wait\.(completed|withdrawn) signal:paid$/.test(line))).toEqual([
    "wait.withdrawn signal:paid",
  ]);
});

test("a signal that is matched while the end of its step is being written goes to the next step", async () => {
  const decided = gate();
  let isEnding = false;
  const store = watchedStore((batch) => {
    if (!writes(batch, "step.completed") || isEnding) return undefined;
    isEnding = true;
    return decided.opened;
  });
  const pawl = new Pawl(store, silent);
  onTestFinished(() => pawl.close());
  class Listening extends Workflow {
    static {
      this.step("first", async (w) => {
        // This is not `race` of the context: the wait that lost is withdrawn when the step ends.
        await Promise.race([w.waitForSignal("go"), w.sleep("nap", 1)]);
      });
      this.step("second", async (w) => {
        received = await w.waitForSignal("go", { timeout: "365 days" });
      });
    }
  }
  let received: unknown;
  const worker = await pawl.worker({ workflows: [Listening], poll: Number.POSITIVE_INFINITY }).start();
  const run = await pawl.start(Listening);
  await until(() => isEnding);
  await run.signal("go", "for the second");
  const idle = worker.runUntilIdle();
  for (let passed = 0; passed < 20; passed += 1) await new Promise(setImmediate);
  decided.open();
  await run.result({ timeout: "100s" });
  await idle;
  expect(received).toBe("for the second");
});

test("a signal that is returned by a withdrawn wait is taken by a wait that is already open", async () => {
  const pawl = new Pawl(new MemoryStore(), silent);
  onTestFinished(() => pawl.close());
  const wf = workflow("sharing", async (ctx) => {
    const raced = ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("late", 1) });
    const openWait = ctx.waitForSignal("paid", { timeout: "365 days" });
    return [(await raced).name, await openWait];
  });
  const options = { workflows: [wf], poll: Number.POSITIVE_INFINITY };
  const first = await pawl.worker(options).start();
  const run = await pawl.start(wf);
  await first.stop();
  const timer = (await run.history()).find(({ type }) => type === "timer.started");
  await until(() => Date.now() > Number(timer?.at) + 1);
  // The timer is due and no worker has fired it, so one decision fires it and completes the wait with the signal.
  await run.signal("paid", "once");
  expect(await logOf(run)).toEqual(expect.arrayContaining(["timer.fired late", "wait.completed signal:paid"]));
  await pawl.worker(options).start();
  expect(await run.result({ timeout: "100s" })).toEqual(["late", "once"]);
});
