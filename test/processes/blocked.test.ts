/**
 * A run blocks the event loop of its worker for ever. The other runs of that worker continue elsewhere, and after two
 * workers the run is paused with a reason that names the cause.
 */
import { connect, type Pawl } from "pawl";
import { afterAll, describe, expect, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

/** A blocked worker uses a processor for about this long, twice for each run. */
const firstLease = 2_000;
const names = ["first", "second", "third"];

/** See programs/blocking-worker.mjs. */
class BlockingWorker extends LibraryProcess {
  readonly ready = this.told((message) => (message === "ready" ? true : undefined));

  constructor(options: { url: string; name: string; lease: number; concurrency: number }) {
    super("processes/programs/blocking-worker", options);
  }
}

afterAll(() => killAllProcesses());

interface Fleet {
  readonly pawl: Pawl;
  end(): Promise<void>;
}

async function startFleet(kind: StoreKind, lease: number): Promise<Fleet> {
  const { url, drop } = await testDatabase(kind);
  const pawl = await connect(url, { logger: silent });
  for (const name of ["spins", "sits", "spinsLater", "SpinsInClass", "healthy"]) await pawl.createWorkflow(name);
  const workers = names.map((name) => new BlockingWorker({ url, name, lease, concurrency: 20 }));
  await Promise.all(workers.map(({ ready }) => ready));
  const end = async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await pawl.close();
    await drop();
  };
  return { pawl, end };
}

/**
 * The blocking run is paused and the others end; returns the names of the workers that it blocked. On a machine where a
 * blocked worker cannot be reported before its lease ends, the run may block all three workers: then the scenario is
 * repeated with longer leases.
 */
async function blockedBy(kind: StoreKind, workflow: string, step: string | null): Promise<string[]> {
  for (let lease = firstLease; ; lease *= 3) {
    const fleet = await startFleet(kind, lease);
    try {
      const workers = await blockedIn(fleet, workflow, step);
      if (workers !== null) return workers;
    } finally {
      await fleet.end();
    }
  }
}

async function blockedIn({ pawl }: Fleet, workflow: string, step: string | null): Promise<string[] | null> {
  const bad = await pawl.workflow<null, null>(workflow).trigger(null);
  const good = await Promise.all(
    Array.from({ length: 20 }, () => pawl.workflow<null, string>("healthy").trigger(null)),
  );
  const isHeld = async () => (await bad.status()) === "paused";
  const areAllBlocked = async () => (await pawl.metrics("healthy")).workers.every(({ live }) => !live);
  await until(async () => (await isHeld()) || (await areAllBlocked()));
  if (!(await isHeld())) return null;
  expect(await Promise.all(good.map((run) => run.result()))).toEqual(good.map(() => "done"));
  const history = await bad.history();
  const blocked = history.filter(({ type }) => type === "run.blocked");
  const workers = blocked.map(({ data }) => String((data as { worker: string }).worker));
  const paused = history.findLast(({ type }) => type === "run.paused");
  const what = step === null ? "Its code" : `Step "${step}"`;
  expect(paused?.data).toMatchObject({
    reason: expect.stringContaining(
      `${what} blocked the event loop of worker "${workers[0]}" and then of worker "${workers[1]}"`,
    ),
    error: { name: "QuarantineError", code: "QUARANTINED" },
  });
  expect(paused?.node).toBe(step);
  expect((await pawl.verify()).differences).toEqual([]);
  return workers;
}

forEachStore(
  (kind) => {
    // The tests run concurrently, each with a fleet of its own: they mostly wait for leases.
    describe.concurrent("a run that blocks its worker", { timeout: 300_000 }, () => {
      test("in a step that never returns is paused after two workers, and 20 other runs complete", async () => {
        // A loop that uses the processor is detected in the same way on every store, so one store is enough.
        const workers = await blockedBy(kind, kind === "sqlite" ? "spins" : "sits", "spin");
        expect(workers).toHaveLength(2);
        expect(new Set(workers).size).toBe(2);
      });

      // What blocks is found in the process of the worker, the same on every store.
      if (kind !== "sqlite") return;

      test("in a class step, which is called after an await, is also reported with the name of the step", async () => {
        expect(new Set(await blockedBy(kind, "SpinsInClass", "spin")).size).toBe(2);
      });

      test("without a frame of Pawl on the stack is detected as well", async () => {
        expect(new Set(await blockedBy(kind, "spinsLater", null)).size).toBe(2);
      });
    });
  },
  ["sqlite", "postgres", "mysql"],
);
