/**
 * The worker of a class is killed while the jobs of its steps run in another process, or when they have just completed
 * there. Another worker takes the runs over: each job's effect, as noted outside of the database, exists exactly once.
 */
import { writeFileSync } from "node:fs";
import { connect, type Pawl, type RunHandle } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { until } from "../support/waiting.js";
import { ItemLedger } from "./item-ledger.js";

const orders = 8;
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each process that it kills. */
const leaseMs = 60_000;

class ClassJobsProcess extends LibraryProcess {
  readonly ready: Promise<string>;

  /** See programs/class-jobs-worker.mjs. */
  constructor(options: object) {
    super("processes/programs/class-jobs-worker", options);
    this.ready = this.told(({ workerId }: { readonly workerId: string }) => workerId);
  }
}

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let ledger: ItemLedger;
    let pawl: Pawl;

    beforeEach(async () => {
      ledger = new ItemLedger();
      database = await testDatabase(kind);
      pawl = await connect(database.url);
    });

    afterEach(async () => {
      await killAllProcesses();
      await pawl?.close();
      await database?.drop();
      ledger.remove();
    });

    const gate = () => `${ledger.file}.gate`;
    const spawn = async (role: "class" | "job", stuckAt: "hook" | "side" | null = null) => {
      const options = { url: database.url, ledger: ledger.file, gate: gate(), lease: leaseMs, role, stuckAt };
      const spawned = new ClassJobsProcess(options);
      await spawned.ready;
      return spawned;
    };
    const startAll = () =>
      Promise.all(Array.from({ length: orders }, (_, number) => pawl.workflow("Order").trigger({ number }))) as Promise<
        RunHandle<any, any>[]
      >;
    const allHave = async (runs: readonly RunHandle<any, any>[], wanted: string) => {
      for (const run of runs) if (!(await run.history()).some(({ type }) => type === wanted)) return false;
      return true;
    };
    const expectOnce = async (runs: readonly RunHandle<any, any>[]) => {
      for (const run of runs) await run.result({ timeout: "100s" });
      expect(
        ledger
          .items()
          .map(({ item }) => item)
          .toSorted((a, b) => a - b),
      ).toEqual([...Array(orders).keys()]);
      const jobs = (await pawl.runs({ workflow: "job:Charge", limit: 100 })).runs;
      expect(jobs.map(({ status }) => status)).toEqual(Array(orders).fill("completed"));
      expect((await pawl.verify()).differences).toEqual([]);
    };

    test("a job that runs elsewhere while the worker of its class is killed takes effect once", {
      timeout: 300_000,
    }, async () => {
      await spawn("job");
      const first = await spawn("class", "side");
      const runs = await startAll();
      await until(() => ledger.length === orders);
      expect(await first.kill()).toEqual({ code: null, signal: "SIGKILL" });
      await expireLeaseOf(first.pid, kind, database.url);
      await spawn("class");
      await until(() => allHave(runs, "run.recovered"));
      writeFileSync(gate(), "");
      await expectOnce(runs);
    });

    test("a job that has completed when the worker of its class is killed takes effect once", {
      timeout: 300_000,
    }, async () => {
      writeFileSync(gate(), "");
      await spawn("job");
      const first = await spawn("class", "hook");
      const runs = await startAll();
      await until(() => allHave(runs, "child.completed"));
      expect(await first.kill()).toEqual({ code: null, signal: "SIGKILL" });
      await expireLeaseOf(first.pid, kind, database.url);
      await spawn("class");
      await expectOnce(runs);
      for (const run of runs) {
        const pays = (await run.executions()).filter(({ step }) => step === "pay");
        expect(pays.map(({ outcome }) => outcome)).toEqual(["abandoned", "success"]);
      }
    });
  },
  ["sqlite", "postgres", "mysql"],
);
