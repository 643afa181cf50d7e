/** Limits on how many runs of one key are executed at a time. */
import { graph, limit, step, Workflow, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import type { World } from "../support/virtual-worlds.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

/** Steps that are executed until the test lets them end, and how many of each key were at the same time. */
class Bodies {
  readonly running = new Map<string, Set<() => void>>();
  readonly most = new Map<string, number>();
  readonly order: string[] = [];

  async run(key: string): Promise<void> {
    const done = gate();
    const running = this.running.get(key) ?? new Set();
    this.running.set(key, running.add(done.open));
    this.most.set(key, Math.max(this.most.get(key) ?? 0, running.size));
    this.order.push(key);
    await done.opened;
    running.delete(done.open);
  }

  count(key: string): number {
    return this.running.get(key)?.size ?? 0;
  }

  endOne(key: string): void {
    const [open] = this.running.get(key) ?? [];
    open?.();
  }

  endAll(): void {
    for (const running of this.running.values()) for (const open of running) open();
  }
}

const slotsIn = async (w: Pick<World, "store">, name: string) =>
  (await w.store.limits.lanes(name, { after: null, limit: 100 })).reduce((sum, { inUse }) => sum + inUse, 0);

describe("a limit of the concurrency", () => {
  test("lets as many runs of each key be executed as it says, and the next when one ends", async () => {
    const bodies = new Bodies();
    const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 2 });
    const sync = workflow("sync", { limits: [perTenant] }, (ctx, { tenant }: { tenant: string }) =>
      ctx.step("copy", () => bodies.run(tenant)),
    );
    const w = await world();
    const { worker } = await w.worker([sync]);
    const runs = await w.pawl.startMany(
      sync,
      ["a", "a", "a", "a", "b"].map((tenant) => ({ tenant })),
    );
    const settled = worker.runUntilIdle();
    await until(() => bodies.count("a") === 2 && bodies.count("b") === 1);
    expect(await slotsIn(w, "per_tenant")).toBe(3);
    bodies.endOne("a");
    await until(() => bodies.order.length === 4);
    expect(bodies.count("a")).toBe(2);
    while ((await Promise.all(runs.map((run) => run.status()))).some((status) => status !== "completed")) {
      bodies.endAll();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await settled;
    expect(bodies.most).toEqual(
      new Map([
        ["a", 2],
        ["b", 1],
      ]),
    );
    expect(await slotsIn(w, "per_tenant")).toBe(0);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("is shared by all workflows that name it, in every style, and by several workers", async () => {
    const bodies = new Bodies();
    const api = limit("api", { concurrency: 2 });
    const f = workflow("f", { limits: [api] }, (ctx) => ctx.step("call", () => bodies.run("api")));
    const g = graph("g", [step("call", () => bodies.run("api"))], { limits: [api] });
    class C extends Workflow<null> {
      static {
        this.options({ name: "c", limits: [api], allowMultiple: true });
        this.step("call", () => bodies.run("api"));
      }
    }
    const w = await world();
    const workers = [await w.worker([f, g, C]), await w.worker([f, g, C])];
    const runs = [
      ...(await w.pawl.startMany(f, [undefined, undefined, undefined])),
      await w.pawl.start(g),
      await w.pawl.start(g),
      await w.pawl.start(C),
      await w.pawl.start(C),
    ];
    let isOver = false;
    const settled = workers.map(async ({ settle }) => {
      while (!isOver) await settle();
    });
    while ((await Promise.all(runs.map((run) => run.status()))).some((status) => status !== "completed")) {
      bodies.endAll();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    isOver = true;
    await Promise.all(settled);
    expect(bodies.order).toHaveLength(7);
    expect(bodies.most.get("api")).toBeLessThanOrEqual(2);
    expect(await slotsIn(w, "api")).toBe(0);
  });

  test("a run that sleeps, waits or is paused holds nothing", async () => {
    const one = limit("one", { concurrency: 1 });
    const entered: string[] = [];
    const patient = workflow("patient", { limits: [one] }, async (ctx, name: string) => {
      await ctx.step("enter", () => entered.push(name));
      if (name === "sleeps") await ctx.sleep("nap", "1 day");
      if (name === "waits") await ctx.waitForSignal("go");
      if (name === "pauses") await ctx.pause("wait for an operator");
    });
    const t = await start(patient);
    const runs = [];
    for (const name of ["sleeps", "waits", "pauses", "ends"]) runs.push(await t.pawl.start(patient, name));
    await t.settle();
    expect(entered.sort()).toEqual(["ends", "pauses", "sleeps", "waits"]);
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["waiting", "waiting", "paused", "completed"]);
    await runs[1]?.signal("go");
    await runs[2]?.resume();
    await t.advance("1 day");
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(Array(4).fill("completed"));
  });

  test("a waiting parent does not hold the slot that its child needs", async () => {
    const one = limit("one", { concurrency: 1 });
    const child = workflow("child", { limits: [one] }, async () => "done");
    const parent = workflow("parent", { limits: [one] }, (ctx) => ctx.run(child));
    const t = await start(parent, child);
    const run = await t.pawl.start(parent);
    await t.speedrun(run);
    expect(await run.result()).toBe("done");
  });

  test("a dead worker's slots are free when its lease has expired, and its runs begin again under the limit", async () => {
    const bodies = new Bodies();
    const one = limit("one", { concurrency: 1 });
    const wf = workflow("wf", { limits: [one] }, (ctx) => ctx.step("work", () => bodies.run("x")));
    const w = await world();
    const first = await w.worker([wf]);
    const runs = await w.pawl.startMany(wf, [undefined, undefined]);
    void first.settle();
    await until(() => bodies.count("x") === 1);
    await first.kill();
    bodies.endAll();
    const second = await w.worker([wf]);
    const settled = second.settle();
    while ((await Promise.all(runs.map((run) => run.status()))).some((status) => status !== "completed")) {
      expect(await slotsIn(w, "one")).toBeLessThanOrEqual(1);
      bodies.endAll();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await settled;
    expect(await slotsIn(w, "one")).toBe(0);
  });

  test("canceling and pausing runs that wait for a slot does not keep others from it", async () => {
    const bodies = new Bodies();
    const one = limit("one", { concurrency: 1 });
    const wf = workflow("wf", { limits: [one] }, (ctx, name: string) => ctx.step("work", () => bodies.run(name)));
    const w = await world();
    const { worker } = await w.worker([wf]);
    const runs = [];
    for (const name of ["a", "b", "c", "d"]) {
      w.clock.moveTo(w.clock.read() + 1);
      runs.push(await w.pawl.start(wf, name));
    }
    const settled = worker.runUntilIdle();
    await until(() => bodies.count("a") === 1);
    await runs[1]?.cancel();
    await runs[2]?.pause();
    bodies.endOne("a");
    await until(() => bodies.count("d") === 1);
    bodies.endOne("d");
    await settled;
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual([
      "completed",
      "canceled",
      "paused",
      "completed",
    ]);
    await runs[2]?.resume();
    const rest = worker.runUntilIdle();
    await until(() => bodies.count("c") === 1);
    bodies.endAll();
    await rest;
    expect(await runs[2]?.status()).toBe("completed");
  });

  test("options of the start reach a run that waits for a slot: priority, delay, tags as key", async () => {
    const order: string[] = [];
    const byTag = limit("by_tag", { key: "tags.0", concurrency: 1 });
    const wf = workflow("wf", { limits: [byTag] }, async (_ctx, name: string) => void order.push(name));
    const t = await start(wf);
    await t.pawl.start(wf, "late", { tags: ["x"], delay: "1h" });
    await t.pawl.start(wf, "plain", { tags: ["x"] });
    await t.pawl.start(wf, "urgent", { tags: ["x"], priority: 5 });
    await t.settle();
    expect(order).toEqual(["urgent", "plain"]);
    await t.advance("1h");
    expect(order).toEqual(["urgent", "plain", "late"]);
  });

  test("a key function that throws gives the empty key, and the limit holds", async () => {
    const strange = limit("strange", {
      key: () => {
        throw new Error("no key");
      },
      concurrency: 1,
    });
    const wf = workflow("wf", { limits: [strange] }, async () => "ran");
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toBe("ran");
  });

  test("crashes before and after every commit leave no slot behind and change no result", async () => {
    const one = limit("one", { concurrency: 1 });
    const wf = workflow("wf", { limits: [one] }, async (ctx, n: number) => {
      const a = await ctx.step("a", () => n + 1);
      await ctx.sleep("nap", "1h");
      return ctx.step("b", () => a * 2);
    });
    const t = await start(wf);
    await t.crashTest(wf, 20);
  });
});

describe("fairness", () => {
  test("one key with many waiting runs does not keep the others from their turns", async () => {
    const order: string[] = [];
    const api = limit("api", { concurrency: 1 });
    const wf = workflow(
      "wf",
      { limits: [api], fairBy: "input.tenant" },
      async (_ctx, { tenant }: { tenant: string }) => {
        order.push(tenant);
      },
    );
    const t = await start(wf);
    await t.pawl.startMany(
      wf,
      Array.from({ length: 50 }, () => ({ tenant: "big" })),
    );
    for (const tenant of ["a", "b", "c"]) await t.pawl.startMany(wf, [{ tenant }, { tenant }]);
    await t.settle();
    expect(order).toHaveLength(56);
    for (const tenant of ["a", "b", "c"]) {
      const positions = order.flatMap((name, index) => (name === tenant ? [index] : []));
      expect(positions[0]).toBeLessThan(4);
      expect((positions[1] as number) - (positions[0] as number)).toBeLessThanOrEqual(4);
    }
  });

  test("workflows with and without limits take turns on a worker with one slot", async () => {
    const order: string[] = [];
    const many = limit("many", { concurrency: 10 });
    const limited = workflow("limited", { limits: [many] }, async () => void order.push("limited"));
    const plain = workflow("plain", async () => void order.push("plain"));
    const w = await world();
    const { settle } = await w.worker([limited, plain], { concurrency: 1 });
    await w.pawl.startMany(limited, Array(6).fill(undefined));
    await w.pawl.startMany(plain, Array(6).fill(undefined));
    await settle();
    expect(new Set(order.slice(0, 4))).toEqual(new Set(["limited", "plain"]));
    expect(order).toHaveLength(12);
  });
});

test("mistakes are refused when the limit or the workflow is defined", async () => {
  expect(() => limit("x", { concurrency: 0 })).toThrow("at least 1");
  expect(() => limit("x", { concurrency: 1.5 })).toThrow("whole number");
  expect(() => limit("", { concurrency: 1 })).toThrow("limit");
  expect(() => limit("x", { key: "output.a", concurrency: 1 })).toThrow("input, hero or tags");
  expect(() => limit("x", { concurency: 1 } as never)).toThrow("concurency");
  const x = limit("x", { concurrency: 1 });
  expect(() => workflow("w", { limits: ["x"] as never }, () => {})).toThrow("made by limit");
  expect(() => workflow("w", { limits: [x, x] }, () => {})).toThrow("twice");
  expect(() => workflow("w", { fairBy: "tenant" }, () => {})).toThrow("fairBy");
  const other = workflow("v", { limits: [limit("x", { concurrency: 2 })] }, () => {});
  const w = await world();
  const wf = workflow("w", { limits: [x] }, () => {});
  expect((await errorOf(w.worker([wf, other]))).message).toContain('Two different limits are called "x"');
});
