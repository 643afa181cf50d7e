/** `metrics` reports the same figures as a count by hand. */
import { InvalidInputError, PermanentError, Workflow, WorkflowNotFoundError, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { batch, finish, newRuns, transition, workerInfo } from "../../src/testing/store-suite/builders.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const [second, hour, day] = [1_000, 3_600_000, 86_400_000];
const nap = workflow("nap", async (ctx, ms: number) => {
  await ctx.sleep("rest", ms);
  if (ms === 13) throw new PermanentError("unlucky");
  return ms;
});
const listening = workflow("listening", (ctx) => ctx.waitForSignal("go"));
const noMeasures = { mean: null, p50: null, p95: null, p99: null };

forMemoryAnd("mysql", (kind) => {
  test("counts, rates, durations, waits, queue and workers match a count by hand", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const began = w.clock.read();
    const go = async (settle: () => Promise<number | null>) => {
      for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    };
    const { settle, worker } = await w.worker([nap], { name: "w1", concurrency: 1_000 });
    // Sleeps of 1 to 99 s all start at the same time, so the duration of each run is the length of its sleep.
    await w.pawl.startMany(
      nap,
      Array.from({ length: 99 }, (_, n) => (n + 1) * second),
    );
    await go(settle);
    for (let n = 0; n < 3; n += 1) await w.pawl.start(nap, 13);
    await go(settle);
    const waiting = await w.pawl.start(nap, 100 * day);
    await settle();
    await (await w.pawl.start(nap, 5 * day)).cancel();
    const paused = await w.pawl.start(nap, 100 * day);
    await settle();
    await paused.pause();
    await worker.stop();
    w.clock.moveTo(w.clock.read() + hour);
    // No worker takes these two; the first has been due for a minute when the metrics are read.
    await w.pawl.start(nap, 1);
    w.clock.moveTo(w.clock.read() + 60 * second);
    await w.pawl.start(nap, 1);
    await w.pawl.start(nap, 1, { delay: "1 hour" });

    const metrics = await w.pawl.metrics(nap);
    expect(metrics).toMatchObject({
      workflow: "nap",
      since: new Date(w.clock.read() - day),
      truncated: false,
      runs: {
        total: 108,
        completed: 99,
        failed: 3,
        canceled: 1,
        active: 5,
        pending: 3,
        running: 0,
        waiting: 1,
        paused: 1,
      },
      successRate: 99 / 102,
      durations: { mean: 50 * second, p50: 50 * second, p95: 95 * second, p99: 99 * second },
      queue: { name: "nap", depth: 2, oldestAgeMs: 60 * second, executing: 0, paused: null },
    });
    expect(metrics.waits).toEqual({ mean: 0, p50: 0, p95: 0, p99: 0 });
    expect(metrics.workers).toMatchObject([{ name: "w1", live: false, executing: 0 }]);
    expect(await w.pawl.metrics("nap", { since: began })).toEqual({ ...metrics, since: new Date(began) });
    const young = await w.pawl.metrics(nap, { since: new Date(w.clock.read() - hour) });
    expect(young.runs).toMatchObject({ total: 3, pending: 3, active: 3 });
    expect(young).toMatchObject({ successRate: null, durations: noMeasures, waits: noMeasures });
    expect(await waiting.status()).toBe("waiting");
  });

  test("a run that is being executed counts as executing, and a run that waited for a worker appears in the waits", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const open = gate();
    const slow = workflow("slow", (ctx) => ctx.step("think", () => open.opened));
    await w.pawl.start(slow);
    w.clock.moveTo(w.clock.read() + 7 * second);
    const { worker, settle } = await w.worker([slow], { name: "w1", lease: 3_000 });
    await until(() => worker.active === 1);
    await until(async () => (await w.pawl.workers())[0]?.executing === 1);
    expect(await w.pawl.metrics(slow)).toMatchObject({
      runs: { total: 1, running: 1, active: 1 },
      queue: { depth: 0, oldestAgeMs: null, executing: 1 },
      workers: [{ name: "w1", live: true, executing: 1 }],
    });
    open.open();
    await settle();
    expect((await w.pawl.metrics(slow)).waits).toEqual({ mean: 7_000, p50: 7_000, p95: 7_000, p99: 7_000 });
  });
});

describe("metrics()", () => {
  test("also counts the runs that wait in the queues of its steps", async () => {
    class Mailing extends Workflow {
      static {
        this.step("write", () => {});
        this.step("send", { queue: "mail" }, () => {});
      }
    }
    const w = await world();
    const { settle } = await w.worker([Mailing], { queues: ["Mailing"] });
    await w.pawl.start(Mailing);
    await settle();
    expect((await w.pawl.metrics(Mailing)).queue).toMatchObject({ name: "Mailing", depth: 1 });
  });

  test("reads the newest 10,000 runs and says so", async () => {
    const w = await world();
    const fence = await w.store.registerWorker(workerInfo());
    const made = async (count: number) => {
      const runs = newRuns(count, { workflow: "many", due: { kind: "owned" } });
      await w.store.commit(batch(fence, [], runs));
      await w.store.commit(
        batch(
          fence,
          runs.map(({ id }) => transition(id, { next: finish() })),
        ),
      );
    };
    await made(6_000);
    w.clock.moveTo(w.clock.read() + hour);
    const later = new Date(w.clock.read());
    await made(4_000);
    expect(await w.pawl.metrics("many")).toMatchObject({
      truncated: false,
      runs: { total: 10_000, completed: 10_000 },
    });
    await made(6_000);
    expect(await w.pawl.metrics("many")).toMatchObject({ truncated: true, runs: { total: 10_000 }, since: later });
  });

  test("refuses an unknown workflow and an invalid date", async () => {
    const w = await world();
    expect(await errorOf(w.pawl.metrics("nobody"))).toBeInstanceOf(WorkflowNotFoundError);
    await w.pawl.createWorkflow("known");
    expect((await w.pawl.metrics("known")).runs.total).toBe(0);
    expect(await errorOf(w.pawl.metrics(listening, { since: new Date("never") }))).toBeInstanceOf(InvalidInputError);
  });
});
