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
function delayedStore() {
  const inner = new MemoryStore();
  const pendingAnswers: { now: (() => void) | null; wait: (() => void) | null } = { now: null, wait: null };
  let isDelaying = false;
  const opensWait = ({ transitions }: Batch) =>
    transitions.some(({ events }) => events.some(({ type }) => type === "wait.started"));
  const delay = <T>(name: keyof typeof pendingAnswers, answer: Promise<T>) =>
    new Promise<T>((resolve) => {
      pendingAnswers[name] = () => resolve(answer);
    });
  const store: Store = new Proxy(inner as Store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "commit")
        return (batch: Batch) =>
          isDelaying && opensWait(batch) ? delay("wait", target.commit(batch)) : target.commit(batch);
      if (name === "now")
        return () =>
          isDelaying && pendingAnswers.wait !== null && pendingAnswers.now === null
            ? delay("now", target.now())
            : target.now();
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    store,
    pendingAnswers,
    startDelaying: () => {
      isDelaying = true;
    },
  };
}

test.each(Array.from({ length: 24 }, (_, microtasks) => microtasks))(
  "a signal is not missed when a read of the inbox ends %i microtasks before the wait is written",
  async (microtasks) => {
    const { store, pendingAnswers, startDelaying } = delayedStore();
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
    startDelaying();
    finish.open();
    await until(() => pendingAnswers.wait !== null);
    // runUntilIdle() reads the inbox of every run that the worker owns.
    const idle = worker.runUntilIdle();
    await until(() => pendingAnswers.now !== null);
    pendingAnswers.now?.();
    for (let passed = 0; passed < microtasks; passed += 1) await null;
    pendingAnswers.wait?.();
    await idle;
    expect(await run.result({ timeout: "100s" })).toBe("while it ran");
  },
);
