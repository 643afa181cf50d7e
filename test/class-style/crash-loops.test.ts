/**
 * A run that repeatedly crashes its workers is paused; a run that makes progress each time is not, however often they
 * die.
 */
import { Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { world } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

/** A place in user code at which the test kills the worker. */
function crashPoint() {
  let reached = gate();
  return {
    crash: () => {
      reached.open();
      return new Promise<never>(() => {});
    },
    next: () => {
      reached = gate();
      return reached.opened;
    },
  };
}

test("a resumable step that moves its cursor between the deaths of its workers is never paused", async () => {
  const crashSite = crashPoint();
  const items = Array.from({ length: 12 }, (_, index) => index);
  let killAt = 1;
  class Long extends Workflow {
    static {
      this.resumableStep("loop", async (_w, iter) => {
        await iter.over(items, (n) => (n === killAt ? crashSite.crash() : undefined));
      });
    }
  }
  const w = await world();
  const run = await w.pawl.start(Long);
  for (; killAt < items.length; killAt += 1) {
    const reached = crashSite.next();
    const worker = await w.worker([Long]);
    w.clock.moveTo(w.clock.read() + 1_000);
    void worker.settle();
    await reached;
    await worker.kill();
  }
  const last = await w.worker([Long]);
  await last.settle();
  expect(await run.status()).toBe("completed");
});

test("a run that completes steps between the deaths of its workers is never paused", async () => {
  const crashSite = crashPoint();
  const steps = 9;
  let killAt = 0;
  const many = workflow("many", async (ctx) => {
    for (let n = 0; n < steps; n += 1) {
      await ctx.step(`step_${n}`, () => n);
      if (n === killAt) await ctx.step("deadly", () => crashSite.crash());
    }
    return steps;
  });
  const w = await world();
  const run = await w.pawl.start(many);
  for (killAt = 0; killAt < steps - 1; killAt += 1) {
    const reached = crashSite.next();
    const worker = await w.worker([many]);
    void worker.settle();
    await reached;
    await worker.kill();
  }
  const last = await w.worker([many]);
  killAt = steps;
  await last.settle();
  expect(await run.status()).toBe("completed");
});

test("a step that makes no progress is paused, with or without a cursor", async () => {
  const crashSite = crashPoint();
  class Poison extends Workflow {
    static {
      this.resumableStep("loop", async (_w, iter) => {
        if (iter.cursor === null) await iter.set(1);
        await crashSite.crash();
      });
    }
  }
  const w = await world();
  const run = await w.pawl.start(Poison);
  for (let death = 0; death < 9; death += 1) {
    const reached = crashSite.next();
    const worker = await w.worker([Poison]);
    w.clock.moveTo(w.clock.read() + 1_000);
    const settled = worker.settle();
    await Promise.race([reached, settled]);
    if ((await run.status()) === "paused") break;
    await worker.kill();
  }
  expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringMatching(/died [56] times/) });
});
