/**
 * A run blocks the event loop of its worker for ever. The other runs of that worker go on elsewhere, and after two workers
 * the run is held, with a reason that says what did it.
 */
import { connect, type Pawl } from "pawl";
import { afterAll, describe, expect, type TestContext, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

const lease = 4_000;
const names = ["first", "second", "third"];

/** See programs/blocking-worker.mjs. */
class BlockingWorker extends LibraryProcess {
  readonly ready = this.told((message) => (message === "ready" ? true : undefined));

  constructor(options: { url: string; name: string; lease: number; concurrency: number }) {
    super("processes/programs/blocking-worker", options);
  }
}

afterAll(() => killAllProcesses());

async function fleet(kind: StoreKind, { onTestFinished }: TestContext): Promise<Pawl> {
  const { url, drop } = await testDatabase(kind);
  const pawl = await connect(url, { logger: silent });
  for (const name of ["spins", "spinsLater", "SpinsInClass", "healthy"]) await pawl.createWorkflow(name);
  const workers = names.map((name) => new BlockingWorker({ url, name, lease, concurrency: 20 }));
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await pawl.close();
    await drop();
  });
  await Promise.all(workers.map(({ ready }) => ready));
  return pawl;
}

/** The run that blocks is held and the others end; the names of the workers that it blocked. */
async function blockedBy(pawl: Pawl, workflow: string, step: string | null): Promise<string[]> {
  const bad = await pawl.workflow<null, null>(workflow).trigger(null);
  const good = await Promise.all(
    Array.from({ length: 20 }, () => pawl.workflow<null, string>("healthy").trigger(null)),
  );
  expect(await Promise.all(good.map((run) => run.result()))).toEqual(good.map(() => "done"));
  await until(async () => (await bad.status()) === "paused");
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
    // Side by side, each with a fleet of its own: they do little but wait for leases.
    describe.concurrent("a run that blocks its worker", { timeout: 120_000 }, () => {
      test("in a step that never returns is held after two workers; 20 other runs complete", async (context) => {
        const pawl = await fleet(kind, context);
        const workers = await blockedBy(pawl, "spins", "spin");
        expect(workers).toHaveLength(2);
        expect(new Set(workers).size).toBe(2);
      });

      test("in a class's step, which is called after an await, is known by the step's name as well", async (context) => {
        const pawl = await fleet(kind, context);
        expect(new Set(await blockedBy(pawl, "SpinsInClass", "spin")).size).toBe(2);
      });

      test("where its call cannot be seen is found all the same", async (context) => {
        const pawl = await fleet(kind, context);
        expect(new Set(await blockedBy(pawl, "spinsLater", null)).size).toBe(2);
      });
    });
  },
  ["sqlite", "postgres", "mysql"],
);
