/** What can be seen of limits from outside: `explain`, `pawl.limits`, `verify`. */
import { limit, workflow } from "pawl";
import { expect, test } from "vitest";
import { runClassOf } from "../../src/core/limits/lane.js";
import { createTransition } from "../../src/core/run/transition.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const tenant = { tenant: "a" };

/** One run holds the only slot of a key, and two wait for it. */
async function contended() {
  const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 1 });
  const done = gate();
  let entered = 0;
  const sync = workflow("sync", { limits: [perTenant] }, (ctx, _: { tenant: string }) =>
    ctx.step("work", async () => {
      entered += 1;
      await done.opened;
    }),
  );
  const w = await world();
  const { worker } = await w.worker([sync]);
  const runs = [];
  for (let n = 0; n < 3; n += 1) {
    w.clock.moveTo(w.clock.read() + 1);
    runs.push(await w.pawl.start(sync, tenant));
  }
  const settled = worker.runUntilIdle();
  await until(() => entered === 1);
  await until(async () => (await w.pawl.limits.get("per_tenant"))?.lanes[0]?.waiting === 2);
  const [holder, second, third] = runs as [(typeof runs)[number], (typeof runs)[number], (typeof runs)[number]];
  const end = async () => {
    done.open();
    await settled;
  };
  return { w, holder, second, third, end };
}

test("explain says which limit a run waits for, how much of it is in use, and by which runs", async () => {
  const { w, holder, second, third, end } = await contended();
  expect((await second.explain()).limited).toMatchObject({ position: 1, waiting: 2 });
  const { runs } = await w.pawl.runs({ status: "pending", explain: true });
  expect(runs.map((run) => run.explanation)).toEqual(
    Array(2).fill('It is due, and waits for the limit "per_tenant" (key "a").'),
  );
  const explanation = await third.explain();
  expect(explanation.because).toBe("limited");
  expect(explanation.text).toContain('the limit "per_tenant" for the key "a": 1 of 1 slots are in use');
  expect(explanation.text).toContain(holder.id);
  expect(explanation.text).toContain("It is number 2 of 2 that wait.");
  expect(explanation.limited).toEqual({
    ...{
      limit: "per_tenant",
      key: "a",
      step: null,
      inUse: 1,
      position: 2,
      waiting: 2,
      earliestAt: null,
      override: null,
    },
    inForce: { concurrency: 1, rate: null },
    holders: [{ runId: holder.id, step: null, since: expect.any(Date) }],
  });
  expect(explanation.since).toEqual((await third.get()).createdAt);
  expect((await holder.explain()).because).toBe("executing");
  await end();
  expect((await third.explain()).because).toBe("ended");
});

test("limits, their lanes, holders and waiting runs can be read", async () => {
  const { w, holder, end } = await contended();
  expect(await w.pawl.limits.list()).toEqual([
    {
      ...{
        name: "per_tenant",
        concurrency: 1,
        rate: null,
        while: "executing",
        onFull: "wait",
        backlog: null,
        override: null,
      },
      inForce: { concurrency: 1, rate: null },
      ...{ inUse: 1, inUseCapped: false, waiting: 2, waitingCapped: false },
      createdAt: expect.any(Date),
    },
  ]);
  const details = await w.pawl.limits.get("per_tenant");
  expect(details?.lanes).toEqual([
    {
      key: "a",
      inUse: 1,
      holders: [{ runId: holder.id, step: null, since: expect.any(Date) }],
      waiting: 2,
      waitingCapped: false,
      nextAt: null,
    },
  ]);
  expect(details?.next).toBeNull();
  expect(await w.pawl.limits.get("unknown")).toBeNull();
  expect(await errorOf(w.pawl.limits.get(5 as never))).toMatchObject({ code: "INVALID_INPUT" });
  await end();
  expect((await w.pawl.limits.get("per_tenant"))?.lanes).toEqual([]);
});

test("lanes are read a page at a time, or one by its key, and what they hold and what waits is counted per lane", async () => {
  const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 1 });
  const done = gate();
  let entered = 0;
  const sync = workflow("sync", { limits: [perTenant] }, (ctx, _: { tenant: string }) =>
    ctx.step("work", async () => {
      entered += 1;
      await done.opened;
    }),
  );
  const w = await world();
  const { worker } = await w.worker([sync]);
  const tenants = ["", "a", "b", "c", "d"];
  await w.pawl.startMany(
    sync,
    tenants.flatMap((name, index) => Array(index + 1).fill({ tenant: name })),
  );
  const settled = worker.runUntilIdle();
  await until(() => entered === tenants.length);
  const { limits } = w.pawl;
  await until(async () => (await limits.list())[0]?.waiting === 10);
  const pages = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await limits.get("per_tenant", { limit: 2, ...(cursor === undefined ? {} : { cursor }) });
    pages.push((page?.lanes ?? []).map(({ key, inUse, waiting }) => [key, inUse, waiting]));
    cursor = page?.next ?? null;
  }
  expect(pages).toEqual([
    [
      ["", 1, 0],
      ["a", 1, 1],
    ],
    [
      ["b", 1, 2],
      ["c", 1, 3],
    ],
    [["d", 1, 4]],
  ]);
  expect(await limits.get("per_tenant", { key: "c" })).toMatchObject({ lanes: [{ key: "c", waiting: 3 }], next: null });
  expect((await limits.get("per_tenant", { key: "z" }))?.lanes).toEqual([]);
  expect((await limits.list())[0]).toMatchObject({ inUse: 5, waiting: 10, waitingCapped: false });
  for (const wrong of [{ limit: 0 }, { limit: 1_001 }, { key: 5 }, { cursor: "x" }, { kye: "a" }])
    expect(await errorOf(limits.get("per_tenant", wrong as never))).toMatchObject({ code: "INVALID_INPUT" });
  done.open();
  await settled;
});

test("with fairBy, the position of a run counts the turns of the others", async () => {
  const one = limit("one", { concurrency: 1 });
  const done = gate();
  let entered = 0;
  const wf = workflow("wf", { limits: [one], fairBy: "input.tenant" }, (ctx, _: { tenant: string }) =>
    ctx.step("work", async () => {
      entered += 1;
      await done.opened;
    }),
  );
  const w = await world();
  const { worker } = await w.worker([wf]);
  const first = await w.pawl.start(wf, { tenant: "x" });
  const settled = worker.runUntilIdle();
  await until(() => entered === 1);
  const start = async (tenant: string) => {
    w.clock.moveTo(w.clock.read() + 1);
    return w.pawl.start(wf, { tenant });
  };
  const many = [await start("a"), await start("a"), await start("a"), await start("a")];
  const single = await start("b");
  await until(async () => (await w.pawl.limits.list())[0]?.waiting === 5);
  const positions = await Promise.all([...many, single].map(async (run) => (await run.explain()).limited?.position));
  const [a1, a2, a3, a4, b] = positions as [number, number, number, number, number];
  expect([a1, b].sort()).toEqual([1, 2]);
  expect([a2, a3, a4]).toEqual([3, 4, 5]);
  expect((await first.explain()).because).toBe("executing");
  done.open();
  await settled;
});

test("behind the first 500, the place in the line is not counted", async () => {
  const one = limit("one", { concurrency: 1 });
  const done = gate();
  let entered = 0;
  const wf = workflow("wf", { limits: [one] }, (ctx) =>
    ctx.step("work", async () => {
      entered += 1;
      await done.opened;
    }),
  );
  const w = await world();
  const { worker } = await w.worker([wf]);
  await w.pawl.start(wf);
  const settled = worker.runUntilIdle();
  await until(() => entered === 1);
  await w.pawl.startMany(wf, Array(501).fill(undefined));
  w.clock.moveTo(w.clock.read() + 1);
  const last = await w.pawl.start(wf);
  await until(async () => (await w.pawl.limits.list())[0]?.waiting === 502);
  const { text, limited } = await last.explain();
  expect(limited).toMatchObject({ position: null, waiting: 502 });
  expect(text).toContain("It is number 501 or later of 502 that wait.");
  done.open();
  await settled;
});

test("explain of a run that waits for a rate says when it may begin, and names an override that is in force", async () => {
  const begun: number[] = [];
  const slow = limit("slow", { rate: { limit: 60, per: "1h" } });
  const wf = workflow("wf", { limits: [slow] }, async (_ctx, n: number) => void begun.push(n));
  const w = await start(wf);
  const runs = await w.pawl.startMany(wf, [1, 2, 3]);
  await w.settle();
  expect(begun).toEqual([1]);
  const now = w.clock.now.getTime();
  const third = await runs[2]?.explain();
  expect(third).toMatchObject({
    because: "limited",
    limited: { position: 2, waiting: 2, inForce: { concurrency: null } },
  });
  expect(third?.until).toEqual(new Date(now + 120_000));
  expect(third?.limited?.earliestAt).toEqual(third?.until);
  expect(third?.text).toContain('the rate of the limit "slow", 60 in 1h: it may begin at ');
  await w.pawl.limits.override("slow", {
    rate: { limit: 1, per: "1h" },
    until: "2 hours",
    by: "ada",
    reason: "Too fast.",
  });
  const slower = await runs[2]?.explain();
  expect(slower?.limited).toMatchObject({ override: { by: "ada" }, inForce: { rate: { limit: 1 } } });
  expect(slower?.text).toContain(" An override by ada is in force until ");
  expect(slower?.text).toMatch(/: Too fast[.]$/);
});

test("explain of a run whose step waits for a slot names the step, the limit and the runs that hold its slots", async () => {
  const api = limit("api", { concurrency: 1 });
  const done = gate();
  let entered = 0;
  const wf = workflow("wf", (ctx) =>
    ctx.step(
      "call",
      async () => {
        entered += 1;
        await done.opened;
      },
      { limit: api },
    ),
  );
  const w = await world();
  const { worker } = await w.worker([wf]);
  const holder = await w.pawl.start(wf);
  const settled = worker.runUntilIdle();
  await until(() => entered === 1);
  const waiter = await w.pawl.start(wf);
  await until(async () => (await waiter.explain()).because === "limited");
  const explanation = await waiter.explain();
  expect(explanation.text).toBe(
    `Its step "call" waits for a free slot of the limit "api": 1 of 1 slots are in use, by ${holder.id} (step "call").`,
  );
  expect(explanation.limited).toMatchObject({ step: "call", position: 1, waiting: 1, holders: [{ runId: holder.id }] });
  expect((await w.pawl.limits.get("api"))?.lanes).toMatchObject([{ key: "", inUse: 1, waiting: 1 }]);
  expect((await w.pawl.limits.list())[0]).toMatchObject({ inUse: 1, waiting: 1 });
  done.open();
  await settled;
});

test("an override that has ended is not shown, and what is in force is", async () => {
  const one = limit("one", { concurrency: 1 });
  const w = await start(workflow("wf", { limits: [one] }, async () => {}));
  await w.settle();
  const set = await w.pawl.limits.override("one", { concurrency: 5, until: "1h" });
  expect(set).toMatchObject({ concurrency: 1, inForce: { concurrency: 5, rate: null }, override: { concurrency: 5 } });
  await w.advance("2h");
  expect((await w.pawl.limits.list())[0]).toMatchObject({ override: null, inForce: { concurrency: 1 } });
});

test("runs that wait for a slot are listed as pending, and count as backlog of their workflow", async () => {
  const { w, second, end } = await contended();
  expect(await second.status()).toBe("pending");
  expect((await w.pawl.queues()).find(({ name }) => name === "sync")).toMatchObject({
    depth: 2,
    executing: expect.any(Number),
  });
  expect((await w.pawl.verify()).differences).toEqual([]);
  await end();
});

test("verify finds slots that no run holds, and runs in a class that does not exist", async () => {
  const { w, holder, second, end } = await contended();
  await end();
  const one = limit("one", { concurrency: 1 });
  const wf = workflow("wf", { limits: [one] }, async (ctx) => void (await ctx.sleep("nap", "1 day")));
  const t = await w.worker([wf]);
  await t.worker.stop();
  const run = await w.pawl.start(wf);
  const fence = await w.store.registerWorker({
    ...{ id: "w", name: "w", host: "h", pid: 1, port: null, leaseMs: 60_000 },
    routes: [],
  });
  const runClass = runClassOf("wf", "", ["one\t"], "");
  await w.store.limits.sort([{ runId: run.id, runClass, hasBegun: false }]);
  const routes = [{ workflow: "wf", version: "" }];
  const admission = await w.store.limits.admit({ fence, routes, limit: 1 });
  expect(admission).toMatchObject({ kind: "admitted", tasks: [{ lanes: ["one\t"] }] });
  expect((await w.pawl.verify()).differences).toEqual([]);
  // A commit that forgets to release the slot.
  const next = { kind: "finish", status: "completed", output: "1", error: null, startedAt: null } as const;
  await w.store.commit({ fence, transitions: [createTransition(run.id, 0, { next })], starts: [] });
  expect((await w.pawl.verify()).differences.filter(({ kind }) => kind === "slot.left_over")).toMatchObject([
    { runId: run.id, text: expect.stringContaining('limit "one"') },
  ]);
  expect([await holder.status(), await second.status()]).toEqual(["completed", "completed"]);
});

test("a paused queue keeps runs with limits from being admitted", async () => {
  const many = limit("many", { concurrency: 10 });
  const wf = workflow("wf", { limits: [many] }, async () => "ran");
  const t = await start(wf);
  await t.pawl.queues();
  await t.pawl.pauseQueue("wf");
  const run = await t.pawl.start(wf);
  await t.settle();
  expect((await run.explain()).because).toBe("queue_paused");
  await t.pawl.resumeQueue("wf");
  await t.speedrun(run);
  expect(await run.result()).toBe("ran");
});
