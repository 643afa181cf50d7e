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
  const { holder, third, end } = await contended();
  const explanation = await third.explain();
  expect(explanation.because).toBe("limited");
  expect(explanation.text).toContain('the limit "per_tenant" for the key "a": 1 of 1 slots are in use');
  expect(explanation.text).toContain(holder.id);
  expect(explanation.text).toContain("2 runs wait like it");
  expect(explanation.since).toEqual((await third.get()).createdAt);
  expect((await holder.explain()).because).toBe("executing");
  await end();
  expect((await third.explain()).because).toBe("ended");
});

test("limits, their lanes, holders and waiting runs can be read", async () => {
  const { w, holder, end } = await contended();
  expect(await w.pawl.limits.list()).toMatchObject([{ name: "per_tenant", concurrency: 1 }]);
  const details = await w.pawl.limits.get("per_tenant");
  expect(details?.lanes).toEqual([
    {
      key: "a",
      inUse: 1,
      holders: [{ runId: holder.id, step: null, since: expect.any(Date) }],
      waiting: 2,
      nextAt: null,
    },
  ]);
  expect(await w.pawl.limits.get("unknown")).toBeNull();
  expect(await errorOf(w.pawl.limits.get(5 as never))).toMatchObject({ code: "INVALID_INPUT" });
  await end();
  expect((await w.pawl.limits.get("per_tenant"))?.lanes).toEqual([]);
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
