/** A run that does nothing but wait for slots of step limits is parked, and slots are offered to it. */
import { graph, limit, step, Workflow, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { databaseFor, type MortalWorker, type World, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

/** A body that runs until the test ends it, in a worker of its own. */
async function holdSlot(w: World, api: ReturnType<typeof limit>) {
  const [begun, done] = [gate(), gate()];
  const holding = workflow("holding", (ctx) =>
    ctx.step(
      "hold",
      async () => {
        begun.open();
        await done.opened;
      },
      { limit: api },
    ),
  );
  const mortal = await w.worker([holding]);
  const run = await w.pawl.start(holding);
  let isOver = false;
  const working = (async () => {
    while (!isOver) {
      await mortal.settle();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  await begun.opened;
  return {
    mortal,
    run,
    end: async () => {
      done.open();
      await until(async () => (await run.status()) === "completed");
      await until(async () => (await heldBy(w, run.id)) === 0);
      isOver = true;
      await working;
    },
    abandon: () => {
      isOver = true;
      return mortal.kill();
    },
  };
}

const heldBy = async ({ store }: World, runId: string) =>
  (await store.limits.slots({ runIds: [runId] }, 10)).filter(({ isWaiting }) => !isWaiting).length;
const stateOf = async ({ store }: World, { id }: { readonly id: string }) => (await store.tasks([id]))[0]?.state;
const slotsOf = async ({ store }: World) =>
  (await store.limits.slots({ afterRunId: null }, 100)).map(({ runId, isWaiting, owner }) => ({
    runId,
    isWaiting,
    isParked: owner === null,
  }));

/** The worker waits with the step for a second, and then parks the run. */
async function parkAfterASecond(w: World, { settle }: MortalWorker, ...runs: readonly { readonly id: string }[]) {
  const begun = performance.now();
  await settle();
  await until(async () => (await Promise.all(runs.map((run) => stateOf(w, run)))).every((state) => state === "parked"));
  expect(performance.now() - begun).toBeGreaterThan(950);
}

describe("a run whose branches wait only for slots of step limits for a second", () => {
  forEachStore((kind) => {
    const database = databaseFor(kind);

    test("is parked and gives up its own slots, and goes on when a slot is offered to it", async () => {
      const api = limit("api", { concurrency: 1 });
      const tenants = limit("tenants", { concurrency: 1 });
      const calls: string[] = [];
      const wf = workflow("wf", { limits: [tenants] }, async (ctx, name: string) => {
        const before = await ctx.step("before", () => `${name} begins`);
        const both = [1, 2].map((n) => ctx.step(`call ${n}`, () => void calls.push(`${name} ${n}`), { limit: api }));
        await Promise.all(both);
        return before;
      });
      const quick = workflow("quick", { limits: [tenants] }, async () => "quick");
      const w = await database.world();
      const holder = await holdSlot(w, api);
      const worker = await w.worker([wf, quick]);
      const run = await w.pawl.start(wf, "a");
      await parkAfterASecond(w, worker, run);
      const why = await run.explain();
      expect(why.because).toBe("limited");
      expect(why.limited).toMatchObject({ limit: "api", step: "call 1", position: 1, inUse: 1 });
      expect(why.limited?.holders.map(({ runId }) => runId)).toEqual([holder.run.id]);
      const second = await w.pawl.start(quick);
      await worker.settle();
      expect(await second.status()).toBe("completed");
      expect(calls).toEqual([]);
      expect((await w.pawl.verify()).differences).toEqual([]);
      await holder.end();
      expect(await run.result({ timeout: "10s" })).toBe("a begins");
      expect(calls.sort()).toEqual(["a 1", "a 2"]);
      await worker.settle();
      expect(await slotsOf(w)).toEqual([]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("is offered the slot for five seconds, and then the next run is", async () => {
      const api = limit("api", { concurrency: 1 });
      const order: string[] = [];
      const named = (name: string) =>
        workflow(name, async (ctx) => ctx.step("call", () => void order.push(name), { limit: api }));
      const [first, second] = [named("first"), named("second")];
      const w = await database.world();
      const holder = await holdSlot(w, api);
      const [one, two] = [await w.worker([first]), await w.worker([second])];
      const a = await w.pawl.start(first);
      await parkAfterASecond(w, one, a);
      const b = await w.pawl.start(second);
      await parkAfterASecond(w, two, b);
      await one.kill();
      await holder.end();
      expect([await stateOf(w, a), await stateOf(w, b)]).toEqual(["ready", "parked"]);
      w.clock.moveTo(w.clock.read() + 5_000);
      await two.settle();
      expect(await b.status()).toBe("completed");
      const late = await w.worker([first]);
      await late.settle();
      expect(await a.status()).toBe("completed");
      expect(order).toEqual(["second", "first"]);
      w.clock.moveTo(w.clock.read() + 5_000);
      await late.settle();
      expect(await slotsOf(w)).toEqual([]);
    });

    test("goes on when the worker with the slot dies, although no worker knows of it", async () => {
      const api = limit("api", { concurrency: 1 });
      const wf = workflow("wf", (ctx) => ctx.step("call", () => "called", { limit: api }));
      const w = await database.world();
      const holder = await holdSlot(w, api);
      const first = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await parkAfterASecond(w, first, run);
      await first.kill();
      await holder.abandon();
      const next = await w.worker([wf]);
      w.clock.moveTo(w.clock.read() + 5_000);
      await next.settle();
      expect(await run.result({ timeout: "10s" })).toBe("called");
      expect(await slotsOf(w)).toEqual([]);
    });

    test("leaves nothing behind when it is canceled, and a paused run is not offered the slot", async () => {
      const api = limit("api", { concurrency: 1 });
      const wf = workflow("wf", (ctx) => ctx.step("call", () => "called", { limit: api }));
      const w = await database.world();
      const holder = await holdSlot(w, api);
      const worker = await w.worker([wf]);
      const canceled = await w.pawl.start(wf);
      await parkAfterASecond(w, worker, canceled);
      const paused = await w.pawl.start(wf);
      await parkAfterASecond(w, worker, paused);
      const third = await w.pawl.start(wf);
      await parkAfterASecond(w, worker, third);
      await canceled.cancel();
      await worker.settle();
      expect(await canceled.status()).toBe("canceled");
      expect((await slotsOf(w)).filter(({ runId }) => runId === canceled.id)).toEqual([]);
      await paused.pause();
      await holder.end();
      expect(await third.result({ timeout: "10s" })).toBe("called");
      expect(await paused.status()).toBe("paused");
      expect(await slotsOf(w)).toEqual([]);
      await paused.resume();
      await worker.settle();
      expect(await paused.result({ timeout: "10s" })).toBe("called");
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("is parked at once when its worker stops, and keeps its place", async () => {
      const api = limit("api", { concurrency: 1 });
      const wf = workflow("wf", (ctx) => ctx.step("call", () => "called", { limit: api }));
      const w = await database.world();
      const holder = await holdSlot(w, api);
      const first = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await first.settle();
      await first.worker.stop();
      expect(await stateOf(w, run)).toBe("parked");
      expect((await slotsOf(w)).filter(({ runId }) => runId === run.id)).toEqual([
        { runId: run.id, isWaiting: true, isParked: true },
      ]);
      const next = await w.worker([wf]);
      await next.settle();
      expect(await stateOf(w, run)).toBe("parked");
      await holder.end();
      await next.settle();
      expect(await run.result({ timeout: "10s" })).toBe("called");
    });
  });

  test("is parked in class and in graph style, too, also while the body of a declared step waits for a call", async () => {
    const api = limit("api", { concurrency: 1 });
    const g = graph("g", [
      step("outer", async (ctx) => ctx.step("inner", () => 1, { limit: api })),
      step("beside", () => 2, { limit: api }),
    ]);
    class C extends Workflow<null> {
      static {
        this.options({ name: "c", allowMultiple: true });
        this.step("call", { limit: api, timeout: "3s" }, () => "c");
      }
    }
    const w = await world();
    const holder = await holdSlot(w, api);
    const worker = await w.worker([g, C]);
    const runs = [await w.pawl.start(g), await w.pawl.start(C)];
    await parkAfterASecond(w, worker, ...runs);
    // The time limit of a step is not the time that it waits.
    w.clock.moveTo(w.clock.read() + 4_000);
    await worker.settle();
    await holder.end();
    for (let round = 0; round < 3; round += 1) await worker.settle();
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["completed", "completed"]);
    expect(await slotsOf(w)).toEqual([]);
  });

  test("is not parked while one of its branches is executed, and wakes for a timer of another", async () => {
    const api = limit("api", { concurrency: 1 });
    const body = gate();
    const wf = workflow("wf", async (ctx) => {
      const call = ctx.step("call", () => "called", { limit: api });
      await ctx.step("beside", () => body.opened);
      await ctx.sleep("nap", "1m");
      const after = await ctx.step("after", () => "after the nap");
      return [after, await call];
    });
    const w = await world();
    const holder = await holdSlot(w, api);
    const worker = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    const settled = worker.settle();
    await until(async () => (await slotsOf(w)).length === 2);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await stateOf(w, run)).toBe("owned");
    body.open();
    await settled;
    await parkAfterASecond(w, worker, run);
    w.clock.moveTo(w.clock.read() + 60_000);
    await worker.settle();
    expect((await w.store.log(run.id, { after: 0, limit: 100 })).map(({ node }) => node)).toContain("after");
    await parkAfterASecond(w, worker, run);
    await holder.end();
    await worker.settle();
    expect(await run.result({ timeout: "10s" })).toEqual(["after the nap", "called"]);
  });

  test("whose code does not make the call any more leaves nothing behind", async () => {
    const api = limit("api", { concurrency: 1 });
    const wf = workflow("wf", async (ctx) => {
      const call = ctx.step("call", () => "called", { limit: api });
      await Promise.race([call, ctx.waitForSignal("skip")]);
      await ctx.waitForSignal("end");
    });
    const w = await world();
    const holder = await holdSlot(w, api);
    const worker = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await parkAfterASecond(w, worker, run);
    await run.signal("skip");
    await worker.settle();
    await run.signal("end");
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect((await slotsOf(w)).filter(({ runId }) => runId === run.id)).toEqual([]);
    expect((await w.pawl.verify()).differences).toEqual([]);
    await holder.end();
  });

  test("crashes at every commit while it waits, and calls once", async () => {
    const api = limit("api", { concurrency: 1 });
    for (let crashAt = 1; crashAt <= 6; crashAt += 1) {
      const w = await world();
      const calls: string[] = [];
      const wf = workflow("wf", (ctx) => ctx.step("call", () => void calls.push("called"), { limit: api }));
      const holder = await holdSlot(w, api);
      const first = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await first.settle();
      let count = 0;
      const freezeAt = () => {
        count += 1;
        if (count === crashAt) first.freeze();
      };
      const { commit } = w.store;
      const { changeStepSlots } = w.store.limits;
      w.store.commit = async (batch) => {
        const result = await commit.call(w.store, batch);
        freezeAt();
        return result;
      };
      w.store.limits.changeStepSlots = async (changes) => {
        const result = await changeStepSlots.call(w.store.limits, changes);
        freezeAt();
        return result;
      };
      void first.settle();
      await until(async () => count >= crashAt || (await stateOf(w, run)) === "parked");
      Object.assign(w.store, { commit });
      Object.assign(w.store.limits, { changeStepSlots });
      await first.kill();
      await holder.end();
      const next = await w.worker([wf]);
      for (let second = 0; second < 15 && (await run.status()) !== "completed"; second += 1) {
        await w.store.limits.offerSlots();
        await next.settle();
        w.clock.moveTo(w.clock.read() + 1_000);
      }
      expect(await run.status()).toBe("completed");
      expect(calls).toEqual(["called"]);
      await next.settle();
      expect(await slotsOf(w)).toEqual([]);
    }
  });
});
