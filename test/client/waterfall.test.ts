/** The waterfall of runs of every style: what they spent their time on. */
import { branch, graph, job, PauseError, PermanentError, type StepContext, step, Workflow, workflow } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { readWaterfall } from "../../src/client/inspect/waterfall/read-waterfall.js";
import type { WaterfallRow } from "../../src/client/inspect/waterfall/rows.js";
import { silent, startInMemory, world } from "../support/virtual-worlds.js";
import { lineOf, linesOf, read, rowOf, take } from "./waterfall-lines.js";

const day = 86_400_000;

test("a function: attempts and retry delays in one row, waits for signals, sleeps and children", async () => {
  const refund = workflow("refund", async () => {});
  const order = workflow("order", async (ctx) => {
    await ctx.step("charge", ({ attempt }) => {
      if (attempt < 3) throw new Error("declined");
    });
    await ctx.waitForSignal("approved", { timeout: "7 days" });
    await ctx.sleep("cool_down", "1 day");
    const child = await ctx.run(refund, undefined, { name: "deposit" });
    return child;
  });
  const t = await startInMemory(order, refund);
  const run = await t.pawl.start(order);
  await t.advance("1 hour");
  const open = await read(t, run);
  expect(open.to).toBe(open.now);
  expect(rowOf(open, "approved")).toMatchObject({ state: "waiting", detail: "approved", node: "signal:approved" });
  expect(rowOf(open, "approved").spans[0]).toMatchObject({ to: null, dueAt: expect.any(Number) });
  await t.advance("1 day");
  await run.signal("approved");
  await t.speedrun(run);

  const ended = await read(t, run);
  const attempts = rowOf(ended, "charge").spans.map(({ kind, waitsFor, attempt, state }) => [
    waitsFor ?? kind,
    attempt,
    state,
  ]);
  expect(attempts).toEqual([
    ["execution", 1, "failed"],
    ["retry", 2, "completed"],
    ["execution", 2, "failed"],
    ["retry", 3, "completed"],
    ["execution", 3, "completed"],
  ]);
  expect(rowOf(ended, "charge")).toMatchObject({ attempts: 3, state: "completed", kind: "step" });
  expect(lineOf(rowOf(ended, "cool_down"))).toBe(`sleep cool_down completed: wait sleep ${day}`);
  const children = await t.pawl.runs({ parentId: run.id });
  expect(rowOf(ended, "deposit").child).toEqual({ runId: children.runs[0]?.id, workflow: "refund" });
  expect(ended.rows.map(({ kind }) => kind)).toEqual(["run", "step", "signal", "sleep", "child"]);
  expect(ended).toMatchObject({ firstEvent: 1, hasEarlier: false, hasLater: false });
  expect(ended.to).toBe((await run.get()).finishedAt?.getTime());
});

test("what is due and has not been taken is in the queue: a run, a sleep, and the step after a wait", async () => {
  const night = workflow("night", async (ctx) => ctx.sleep("until_morning", "8 hours"));
  const t = await startInMemory(night);
  const run = await t.pawl.start(night);
  t.clock.moveTo(t.clock.now.getTime() + 5_000);
  expect(linesOf(await read(t, run))).toEqual(["run night pending: queue…"]);
  await t.settle();
  t.clock.moveTo(t.clock.now.getTime() + 8 * 3_600_000 + 60_000);
  expect(linesOf(await read(t, run))).toEqual([
    "run night waiting: queue 5000",
    "sleep until_morning waiting: wait sleep 28800000, queue…",
  ]);
  await t.settle();
  expect(lineOf(rowOf(await read(t, run), "until_morning"))).toBe(
    "sleep until_morning completed: wait sleep 28800000, queue 60000",
  );
});

test("a start time in the future is a wait, not a time in the queue", async () => {
  const later = workflow("later", async () => {});
  const t = await startInMemory(later);
  const run = await t.pawl.start(later, undefined, { delay: "2 days" });
  t.clock.moveTo(t.clock.now.getTime() + day);
  const waterfall = await read(t, run);
  expect(linesOf(waterfall)).toEqual(["run later pending: wait start…"]);
  expect(waterfall).toMatchObject({ firstEvent: null, lastEvent: null });
  t.clock.moveTo(t.clock.now.getTime() + 1.5 * day);
  expect(linesOf(await read(t, run))).toEqual([`run later pending: wait start ${2 * day}, queue…`]);
});

test("a class: calls of a body are nested under their step, and steps to come are listed", async () => {
  let t = undefined as unknown as TestPawl;
  class Contract extends Workflow {
    static {
      this.step(
        "prepare",
        take(() => t, 80),
      );
      this.step("sign", async (w) => {
        await w.step(
          "draw_up",
          take(() => t, 20),
        );
        await w.waitForSignal("signed");
      });
      this.step("archive", { wait: "2 days" }, () => {});
      this.step("close", () => {});
    }
  }
  t = await startInMemory(Contract);
  const run = await t.pawl.start(Contract);
  await t.settle();
  expect(linesOf(await read(t, run)).slice(1)).toEqual([
    expect.stringMatching(/^step prepare completed: execution/),
    "step sign executing: execution…",
    expect.stringMatching(/^ {2}step draw_up completed: execution/),
    "  signal signed waiting: wait signal…",
    "step archive pending",
    "step close pending",
  ]);
  await run.signal("signed");
  await t.settle();
  const waiting = await read(t, run);
  expect(lineOf(rowOf(waiting, "archive"))).toBe("step archive scheduled: wait step…");
  expect(rowOf(waiting, "close").state).toBe("pending");
  await t.speedrun(run);
  expect((await read(t, run)).rows.filter(({ state }) => state !== "completed")).toEqual([]);
});

test("a graph: steps side by side, and steps to come after the open one", async () => {
  const first = step("first", (_ctx: StepContext<number>) => 1);
  const slow = step("slow", (ctx) => ctx.waitForSignal("go"));
  const fast = step("fast", () => 2);
  const last = step("last", () => 3);
  const flow = graph("flow", [first, slow.after(first), fast.after(first), last.after(slow, fast)]);
  const t = await startInMemory(flow);
  const run = await t.pawl.start(flow, 1);
  await t.settle();
  const waterfall = await read(t, run);
  expect(waterfall.rows.map(({ name, state }) => `${name} ${state}`)).toEqual([
    "flow waiting",
    "first completed",
    "slow executing",
    "go waiting",
    "fast completed",
    "last pending",
  ]);
  // A window without the beginning knows only of steps that wait for an open one that they must be still to come.
  const tail = await read(t, run, { after: 2 });
  expect(tail.hasEarlier).toBe(true);
  expect(tail.rows.filter(({ state }) => state === "pending").map(({ name }) => name)).toEqual(["last"]);
});

test("a branch is a row of its own kind, and the steps of the other case are marks", async () => {
  const amount = step("amount", (ctx: StepContext<number>) => ctx.input);
  const ask = step("ask", () => 1);
  const wave = step("wave_through", () => 2);
  const route = branch("route", (ctx) => (ctx.output(amount) > 100 ? "person" : "machine"), {
    person: [ask],
    machine: [wave],
  });
  const refund = graph("refund", [amount, route.after(amount)]);
  const t = await startInMemory(refund);
  const run = await t.pawl.start(refund, 900);
  await t.speedrun(run);
  const waterfall = await read(t, run);
  expect(rowOf(waterfall, "route")).toMatchObject({ kind: "branch", state: "completed" });
  const [mark] = rowOf(waterfall, "wave_through").spans;
  expect(mark).toMatchObject({ state: "skipped", from: mark?.to });
  expect(waterfall.rows.filter(({ state }) => state === "pending")).toEqual([]);
});

test("a built graph: nodes by their names, runs of their jobs as links, similar names as one row", async () => {
  const load = job("Load", async () => {});
  const t = await testPawl({ workflows: [], jobs: [load], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.build("import", (g) => {
    g.node("start", { job: load });
    for (let n = 1; n <= 20; n += 1) g.node(`row_${n}`, { job: load, dependsOn: ["start"] });
  });
  const before = await read(t, run);
  expect(linesOf(before).slice(1)).toEqual(["step start pending", "step row_* ×20 pending"]);
  expect(rowOf(before, "row_*").group).toMatchObject({ count: 20, pending: 20, ended: 0 });
  await t.speedrun(run);
  const after = await read(t, run);
  expect(rowOf(after, "row_*").group).toMatchObject({ count: 20, ended: 20, failed: 0, pending: 0 });
  const { runId } = rowOf(after, "start").child as { runId: string };
  expect(await t.pawl.run(runId).get()).toMatchObject({ workflow: "job:Load", parentId: run.id });
  const members = await read(t, run, { expand: rowOf(after, "row_*").group?.id });
  expect(members.rows.map(({ name }) => name).sort()).toEqual(
    Array.from({ length: 20 }, (_, n) => `row_${n + 1}`).sort(),
  );
  expect(members.rows.every(({ depth, node }) => depth === 1 && node?.startsWith("n_"))).toBe(true);
});

test("pauses with their reason, and a compensation after a cancel", async () => {
  const trip = workflow("trip", async (ctx) => {
    await ctx.step("hotel", () => {}, { compensate: () => {} });
    await ctx.step("car", () => {
      throw new PauseError("Sold out; call them.");
    });
  });
  const t = await startInMemory(trip);
  const run = await t.pawl.start(trip);
  await t.settle();
  const paused = await read(t, run);
  expect(paused.rows[0]).toMatchObject({ kind: "run", state: "paused" });
  const pause = { kind: "pause", to: null, reason: expect.stringContaining("Sold out") };
  expect(paused.rows[0]?.spans.at(-1)).toMatchObject(pause);
  await t.advance("1 minute");
  await run.cancel("no more");
  await t.settle();
  const canceled = await read(t, run);
  expect(rowOf(canceled, "hotel#compensate")).toMatchObject({ kind: "compensation", state: "completed" });
  expect(canceled.rows[0]).toMatchObject({ state: "canceled" });
  expect(canceled.rows.flatMap(({ spans }) => spans).filter(({ to }) => to === null)).toEqual([]);
});

test("a retry shows what it has inherited as marks: an earlier run spent that time", async () => {
  let t = undefined as unknown as TestPawl;
  let isBroken = true;
  const order = workflow("order", async (ctx) => {
    await ctx.step("reserve", async () => {
      take(() => t, 500)();
      await new Promise((resolve) => setTimeout(resolve, 30));
    });
    await ctx.step("ship", () => {
      if (isBroken) throw new PermanentError("no shelf");
    });
  });
  t = await startInMemory(order);
  const failed = await t.pawl.start(order);
  await t.speedrun(failed).catch(() => {});
  expect(await failed.status()).toBe("failed");
  isBroken = false;
  const retry = await failed.retry();
  await t.speedrun(retry);
  const { from, rows } = await read(t, retry);
  expect(from).toBe((await retry.get()).createdAt.getTime());
  const [mark] = (rows.find(({ name }) => name === "reserve") as WaterfallRow).spans;
  expect(mark).toMatchObject({ outcome: "inherited", from: mark?.to });
});

test("the time in which a dead worker had the run is told apart", async () => {
  const slow = workflow("slow", async (ctx) => {
    await ctx.step("first", () => {});
    await ctx.sleep("nap", "1 minute");
    await ctx.step("second", () => {});
  });
  const w = await world();
  const first = await w.worker([slow]);
  const run = await first.pawl.start(slow);
  await first.settle();
  await first.kill();
  const stuck = workflow("slow", async (ctx) => {
    await ctx.step("first", () => {});
    await ctx.sleep("nap", "1 minute");
    await ctx.step("second", () => new Promise(() => {}));
  });
  const second = await w.worker([stuck]);
  w.clock.moveTo(w.clock.now.getTime() + 60_000);
  void second.settle();
  await expect.poll(async () => w.pawl.run(run.id).status()).toBe("running");
  await second.kill();
  w.clock.moveTo(w.clock.now.getTime() + 120_000);
  const third = await w.worker([slow]);
  await third.settle();
  const waterfall = await readWaterfall(w.store, run.id, {});
  const [row] = waterfall.rows;
  expect(row).toMatchObject({ kind: "run", state: "completed" });
  expect(row?.spans.find(({ kind }) => kind === "lost")).toMatchObject({ state: "failed", outcome: "abandoned" });
});
