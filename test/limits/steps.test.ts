/** Limits of steps: slots that a step holds while its body runs. */
import { connect, graph, limit, step, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { databaseFor, silent, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

/** Bodies that end when the test lets them, and how many ran at the same time. */
class Calls {
  most = 0;
  count = 0;
  readonly #open = new Set<() => void>();

  async call<T>(result: T): Promise<T> {
    const done = gate();
    this.#open.add(done.open);
    this.count += 1;
    this.most = Math.max(this.most, this.#open.size);
    await done.opened;
    this.#open.delete(done.open);
    return result;
  }

  get running(): number {
    return this.#open.size;
  }

  endAll(): void {
    for (const open of this.#open) open();
  }
}

describe("the limit of a step", () => {
  forEachStore((kind) => {
    const database = databaseFor(kind);

    test("is kept by all branches, runs and styles, and by several workers together", async () => {
      const calls = new Calls();
      const api = limit("api", { concurrency: 3 });
      const f = workflow("f", async (ctx) =>
        Promise.all([1, 2, 3].map((n) => ctx.step(`call ${n}`, () => calls.call(n), { limit: api }))),
      );
      const g = graph("g", [
        step("one", () => calls.call(1), { limit: api }),
        step("two", () => calls.call(2), { limit: api }),
      ]);
      class C extends Workflow<null> {
        static {
          this.options({ name: "c", allowMultiple: true });
          this.step("call", { limit: api }, () => calls.call("c"));
        }
      }
      const w = await database.world();
      const workers = [await w.worker([f, g, C]), await w.worker([f, g, C])];
      const runs = [await w.pawl.start(f), await w.pawl.start(f), await w.pawl.start(g), await w.pawl.start(C)];
      let isOver = false;
      const settled = workers.map(async ({ settle }) => {
        while (!isOver) await settle();
      });
      await until(() => calls.running === 3);
      while ((await Promise.all(runs.map((run) => run.status()))).some((status) => status !== "completed")) {
        calls.endAll();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      isOver = true;
      await Promise.all(settled);
      expect(calls.count).toBe(9);
      expect(calls.most).toBe(3);
      expect(await runs[0]?.result()).toEqual([1, 2, 3]);
      await until(async () => (await w.store.limits.slots({ afterRunId: null }, 10)).length === 0);
    });

    test("rates count units, retries take units again, and virtual time passes the waits", async () => {
      const begun: number[] = [];
      const tokens = limit("tokens", { rate: { limit: 60, per: "1m" } });
      const w = await database.world();
      const wf = workflow("wf", { retry: { initial: "1ms", jitter: 0 } }, async (ctx, units: number) => {
        await ctx.step(
          "complete",
          ({ attempt }) => {
            begun.push(w.clock.now.getTime());
            if (attempt === 1) throw new Error("once more");
          },
          { limit: tokens, units },
        );
      });
      const { settle } = await w.worker([wf]);
      const from = w.clock.now.getTime();
      const run = await w.pawl.start(wf, 10);
      while ((await run.status()) !== "completed") {
        const nextAt = await settle();
        if (nextAt !== null) w.clock.moveTo(nextAt);
      }
      expect(begun.map((at) => Math.round((at - from) / 1_000))).toEqual([0, 10]);
    });
  });

  test("a step that has used other units than it was admitted with delays the next one accordingly", async () => {
    const begun: number[] = [];
    const tokens = limit("tokens", { rate: { limit: 60, per: "1m" } });
    let w: Awaited<ReturnType<typeof start>>;
    const wf = workflow("wf", async (ctx) => {
      for (const name of ["one", "two", "three"]) {
        await ctx.step(
          name,
          ({ spent }) => {
            begun.push(w.clock.now.getTime());
            spent(20);
            spent(30);
          },
          { limit: tokens, units: 5 },
        );
      }
    });
    w = await start(wf);
    const from = w.clock.now.getTime();
    await w.speedrun(await w.pawl.start(wf));
    expect(begun.map((at) => Math.round((at - from) / 1_000))).toEqual([0, 30, 60]);
  });

  test("each key has a pace and slots of its own, and a step that waits in one key does not delay others", async () => {
    const order: string[] = [];
    const perUser = limit("per_user", { key: "input.user", rate: { limit: 1, per: "1h" } });
    const wf = workflow("wf", (ctx, { user }: { user: string }) =>
      ctx.step("mail", () => void order.push(user), { limit: perUser }),
    );
    const w = await start(wf);
    const runs = await w.pawl.startMany(wf, [{ user: "a" }, { user: "a" }, { user: "b" }]);
    await w.settle();
    expect([...order].sort()).toEqual(["a", "b"]);
    await w.advance("1 hour");
    expect(order.at(-1)).toBe("a");
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["completed", "completed", "completed"]);
  });

  test("a run that is canceled while its step waits does not keep the slot that it would have got", async () => {
    const calls = new Calls();
    const one = limit("one", { concurrency: 1 });
    const wf = workflow("wf", (ctx) => ctx.step("call", () => calls.call(1), { limit: one }));
    const w = await world();
    const { worker } = await w.worker([wf]);
    const runs = await w.pawl.startMany(wf, [undefined, undefined, undefined]);
    const settled = worker.runUntilIdle();
    const slots = () => w.store.limits.slots({ afterRunId: null }, 10);
    await until(async () => (await slots()).length === 3 && (await slots()).some(({ isWaiting }) => !isWaiting));
    const waiting = (await slots()).filter(({ isWaiting }) => isWaiting);
    expect(waiting).toHaveLength(2);
    const canceled = runs.find(({ id }) => id === waiting[0]?.runId);
    await canceled?.cancel();
    await until(async () => (await canceled?.status()) === "canceled");
    calls.endAll();
    await until(() => calls.count === 2);
    calls.endAll();
    await settled;
    const ended = await Promise.all(runs.map(async (run) => [run.id === canceled?.id, await run.status()]));
    expect(ended.sort()).toEqual([
      [false, "completed"],
      [false, "completed"],
      [true, "canceled"],
    ]);
    expect(await slots()).toEqual([]);
  });

  test("a step that is called by a step with a limit cannot wait for another", async () => {
    const [outer, inner] = [limit("outer", { concurrency: 1 }), limit("inner", { concurrency: 1 })];
    const g = graph("g", [
      step("one", async (ctx) => ctx.step("two", () => 2, { limit: inner }), { limit: outer, retry: { attempts: 1 } }),
    ]);
    const w = await start(g);
    const run = await w.pawl.start(g);
    await w.settle();
    expect(JSON.stringify(await run.get())).toContain("holds a slot of the limit");
  });
});

test("a step that is skipped while its next attempt waits for a slot is not executed again", async () => {
  const api = limit("api", { concurrency: 1 });
  const [begun, held] = [gate(), gate()];
  let attempts = 0;
  const flaky = () => {
    attempts += 1;
    throw new Error("The service is down.");
  };
  const holder = async () => {
    begun.open();
    await held.opened;
    return "held";
  };
  const wf = workflow("wf", async (ctx) =>
    Promise.all([
      ctx.step("flaky", flaky, { limit: api, retry: { attempts: 5, initial: "1ms", jitter: false } }),
      ctx.step("holder", holder, { limit: api }),
    ]),
  );
  const pawl = await connect("memory:", { logger: silent });
  onTestFinished(() => pawl.close());
  await pawl.worker({ workflows: [wf] }).start();
  const run = await pawl.start(wf);
  await begun.opened;
  // The failed step waits for the slot that the other one holds.
  const waiting = async () => (await pawl.limits.get("api", { key: "" }))?.lanes[0]?.waiting;
  await until(async () => (await waiting()) === 1);
  await run.skip();
  // Until the worker has read the message, it may begin the next attempt.
  await until(async () => (await run.history()).some(({ type }) => type === "step.skipped"));
  held.open();
  expect(await run.result()).toEqual([undefined, "held"]);
  await until(async () => (await waiting()) === undefined);
  expect(attempts).toBe(1);
});

test("mistakes are refused with the name of the step", async () => {
  const api = limit("api", { concurrency: 1 });
  const open = limit("open", { concurrency: 1, while: "open" });
  expect(() => step("s", () => {}, { units: 3 })).toThrow("no limit");
  expect(() => step("s", () => {}, { limit: "api" as never })).toThrow("limit(…)");
  expect(() => step("s", () => {}, { limit: open })).toThrow("until the end of a run");
  expect(() => step("s", () => {}, { limit: api, units: -1 })).toThrow("whole number");
  expect(() => limit("x", {})).toThrow("limits nothing");
  expect(() => limit("x", { rate: { limit: 0, per: "1m" } })).toThrow("from 1");
  expect(() => limit("x", { rate: { limit: 1, per: "0s" } })).toThrow("at least a millisecond");
  expect(() => limit("x", { rate: { limit: 1, per: "1m", burst: -1 } })).toThrow("burst");
  expect(() => limit("x", { rate: { limit: 1, per: "soon" as never } })).toThrow("soon");
  expect(() => limit("x", { concurrency: 1, while: "always" as never })).toThrow("always");
  const wf = workflow("wf", (ctx) => ctx.step("s", ({ spent }) => spent(3), { retry: { attempts: 1 } }));
  const w = await start(wf);
  const run = await w.pawl.start(wf);
  await w.settle();
  expect(String(await errorOf(run.result()))).toContain("no limit");
});
