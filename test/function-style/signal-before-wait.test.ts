/**
 * A signal that is in the log before its wait starts, while a read of the inbox is in progress at every possible
 * moment.
 */
import { Pawl, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { Batch, Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { logOf } from "../support/run-checks.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** A store whose answers are delayed until the test releases them. */
function heldStore() {
  const inner = new MemoryStore();
  const held: { now: (() => void) | null; wait: (() => void) | null } = { now: null, wait: null };
  let holds = false;
  const opensWait = ({ transitions }: Batch) =>
    transitions.some(({ events }) => events.some(({ type }) => type === "wait.started"));
  const holding = <T>(name: keyof typeof held, answer: Promise<T>) =>
    new Promise<T>((resolve) => {
      held[name] = () => resolve(answer);
    });
  const store: Store = new Proxy(inner as Store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "commit")
        return (batch: Batch) =>
          holds && opensWait(batch) ? holding("wait", target.commit(batch)) : target.commit(batch);
      if (name === "now")
        return () => (holds && held.wait !== null && held.now === null ? holding("now", target.now()) : target.now());
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    store,
    held,
    hold: () => {
      holds = true;
    },
  };
}

test.each(Array.from({ length: 24 }, (_, microtasks) => microtasks))(
  "a signal is not missed when a read of the inbox ends %i microtasks before the wait is written",
  async (microtasks) => {
    const { store, held, hold } = heldStore();
    const pawl = new Pawl(store, silent);
    onTestFinished(() => pawl.close());
    const finish = gate();
    const wf = workflow("listening", async (ctx) => {
      await ctx.step("work", () => finish.opened);
      return ctx.waitForSignal("go", { timeout: "365 days" });
    });
    const worker = await pawl.worker({ workflows: [wf], poll: Number.POSITIVE_INFINITY, replayGrace: 100 }).start();
    const run = await pawl.start(wf);
    await run.signal("go", "while it ran");
    await until(async () => (await logOf(run)).includes("signal.received"));
    hold();
    finish.open();
    await until(() => held.wait !== null);
    // runUntilIdle() reads the inbox of every run that the worker owns.
    const idle = worker.runUntilIdle();
    await until(() => held.now !== null);
    held.now?.();
    for (let passed = 0; passed < microtasks; passed += 1) await null;
    held.wait?.();
    await idle;
    expect(await run.result({ timeout: "100s" })).toBe("while it ran");
  },
);
