/**
 * Housekeeping in workers: old runs are deleted if a retention is set, and each group of stuck runs is reported once.
 */

import { connect, InvalidInputError, type Logger, Pawl, type WorkerOptions, workflow } from "pawl";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemRuntime } from "../../src/runtime/system.js";
import { workerInfo } from "../../src/testing/store-suite/builders.js";
import { StuckRuns } from "../../src/worker/session/stuck-runs.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, type World, world } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";

const day = 86_400_000;
const echo = workflow("echo", async (_ctx, value: number) => value);

/** Starts a worker of a process with this retention. */
async function startWorkerWithRetention(w: World, retention: string | null, options: Partial<WorkerOptions> = {}) {
  const pawl = new Pawl(w.store, silent, { retention: retention ?? undefined });
  const worker = pawl.worker({ workflows: [echo], poll: Number.POSITIVE_INFINITY, housekeeping: 5, ...options });
  onTestFinished(() => worker.stop());
  return worker.start();
}

const captureWarnings = () => {
  const warnings: string[] = [];
  const log: Logger = { ...silent, warn: (text) => warnings.push(String(text)) };
  return { log, warnings };
};

forMemoryAnd("postgres", (kind) => {
  test("workers delete runs that ended longer ago than the retention", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { worker, settle } = await w.worker([echo]);
    await w.pawl.startMany(echo, [1, 2, 3]);
    await settle();
    await worker.stop();
    w.clock.moveTo(w.clock.read() + 29 * day);
    const young = await w.pawl.start(echo, 4);
    await startWorkerWithRetention(w, "30 days");
    await young.result();
    w.clock.moveTo(w.clock.read() + 2 * day);
    await until(async () => (await w.pawl.runs()).runs.length === 1);
    expect(await young.status()).toBe("completed");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

describe("housekeeping", () => {
  test("deletes nothing unless a retention is set", async () => {
    const w = await world();
    const deleteDeadWorkers = vi.spyOn(w.store.maintenance, "deleteDeadWorkers");
    await startWorkerWithRetention(w, null);
    const run = await w.pawl.start(echo, 1);
    await run.result();
    w.clock.moveTo(w.clock.read() + 1_000 * day);
    await until(() => deleteDeadWorkers.mock.calls.length > 3);
    expect(await run.status()).toBe("completed");
  });

  test("is not done by a worker that has it turned off, and stops with its worker", async () => {
    const [w, elsewhere] = [await world(), await world()];
    const deleteDeadWorkers = vi.spyOn(w.store.maintenance, "deleteDeadWorkers");
    await startWorkerWithRetention(w, "1 day", { housekeeping: Number.POSITIVE_INFINITY });
    const frequent = await startWorkerWithRetention(w, "1 day");
    await until(() => deleteDeadWorkers.mock.calls.length > 1);
    await frequent.stop();
    const calls = deleteDeadWorkers.mock.calls.length;
    const others = vi.spyOn(elsewhere.store.maintenance, "deleteDeadWorkers");
    await startWorkerWithRetention(elsewhere, null);
    await until(() => others.mock.calls.length > 3);
    expect(deleteDeadWorkers.mock.calls.length).toBe(calls);
  });

  test("interrupts a long deletion when the worker stops", async () => {
    const w = await world();
    const { settle } = await w.worker([echo]);
    await w.pawl.startMany(
      echo,
      Array.from({ length: 500 }, (_, n) => n),
    );
    await settle();
    w.clock.moveTo(w.clock.read() + 2 * day);
    const { maintenance } = w.store;
    const { deleteRuns } = maintenance;
    let stopping: Promise<void> | null = null;
    const worker = new Pawl(w.store, silent, { retention: "1 day" }).worker({ workflows: [echo], housekeeping: 5 });
    maintenance.deleteRuns = (ids) => {
      stopping ??= worker.stop();
      return deleteRuns.call(maintenance, ids);
    };
    await worker.start();
    await until(() => stopping !== null);
    await stopping;
    expect((await w.pawl.runs({ limit: 1_000 })).runs).toHaveLength(300);
  });

  test("logs a failure as a warning, and is tried again", async () => {
    const w = await world();
    const { log, warnings } = captureWarnings();
    const deleteDeadWorkers = vi
      .spyOn(w.store.maintenance, "deleteDeadWorkers")
      .mockRejectedValueOnce(new Error("down"));
    const worker = await new Pawl(w.store, log).worker({ workflows: [echo], housekeeping: 5 }).start();
    await until(() => deleteDeadWorkers.mock.calls.length > 2);
    await worker.stop();
    expect(warnings).toEqual(["Housekeeping failed (cleaning); it is tried again later."]);
  });

  test("deletes the records of workers that died more than a day ago", async () => {
    const w = await world();
    const cutoffs: number[] = [];
    vi.spyOn(w.store.maintenance, "deleteDeadWorkers").mockImplementation(async ({ lastHeartbeatBefore }) => {
      cutoffs.push(lastHeartbeatBefore);
      return [];
    });
    const before = Date.now() - day;
    await startWorkerWithRetention(w, null);
    await until(() => cutoffs.length > 0);
    expect(cutoffs[0]).toBeGreaterThanOrEqual(before);
    expect(cutoffs[0]).toBeLessThanOrEqual(Date.now() - day);
  });

  test("refuses a retention of zero before the store is opened", async () => {
    for (const retention of ["0s", "59s", "soon", -1])
      expect(await errorOf(connect("memory:", { retention }))).toBeInstanceOf(InvalidInputError);
    await (await connect("memory:", { retention: "30 days" })).close();
  });
});

describe("stuck runs", () => {
  const minute = 60_000;

  test("runs that are overdue without a live worker are reported once, and again when it recurs", async () => {
    const w = await world();
    const { log, warnings } = captureWarnings();
    const stuck = new StuckRuns(w.store, log, systemRuntime);
    const since = new Date(w.clock.read()).toISOString();
    await w.pawl.startMany(echo, [1, 2]);
    await stuck.check();
    w.clock.moveTo(w.clock.read() + 10 * minute);
    await stuck.check();
    expect(warnings).toEqual([]);
    w.clock.moveTo(w.clock.read() + 1);
    await stuck.check();
    await stuck.check();
    const warning = `2 run(s) of workflow "echo" are due, the first since ${since}, and no live worker takes them.`;
    expect(warnings).toEqual([warning]);
    const { worker, settle } = await w.worker([echo]);
    await stuck.check();
    await settle();
    await worker.stop();
    await w.pawl.start(echo, 3);
    w.clock.moveTo(w.clock.read() + 11 * minute);
    await stuck.check();
    expect(warnings).toHaveLength(2);
  });

  test("runs of a worker with an expired lease that no other worker has freed are reported once", async () => {
    const w = await world();
    const { log, warnings } = captureWarnings();
    const stuck = new StuckRuns(w.store, log, systemRuntime);
    const heartbeatAt = Math.min(w.clock.read(), Date.now()) - 20 * minute;
    const { workers } = w.store;
    const info = workerInfo({ name: "w1", leaseMs: 1_000 });
    const load = { executing: [], loopLagMs: null };
    w.store.workers = async () => [{ ...info, epoch: 1, live: true, startedAt: 0, heartbeatAt, ...load }];
    vi.spyOn(w.store.maintenance, "expiredWorkers").mockImplementation(async ({ lastHeartbeatBefore }) =>
      heartbeatAt < lastHeartbeatBefore ? [info.id] : [],
    );
    vi.spyOn(w.store.maintenance, "ownedTaskCounts").mockResolvedValue(new Map([[info.id, 3]]));
    await stuck.check();
    await stuck.check();
    const last = new Date(heartbeatAt).toISOString();
    expect(warnings).toEqual([
      `3 run(s) belong to worker "w1", whose last heartbeat was at ${last}, and no other worker has freed them.`,
    ]);
    w.store.workers = workers;
  });
});
