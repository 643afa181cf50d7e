/**
 * Polling alone is enough: every wake-up is dropped. No process notifies others, and none listens, not even to events
 * in its own process.
 */
import { Pawl } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forEachStore, openStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { isAmong } from "../support/effort.js";
import { killAllProcesses } from "../support/library-process.js";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { Ledger } from "./ledger.js";
import { WorkerProcess } from "./worker-process.js";

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let ledger: Ledger;
    let pawl: Pawl;
    let workers: WorkerProcess[];

    beforeEach(async () => {
      database = await testDatabase(kind);
      ledger = new Ledger();
      const store = await openStore(kind, database.url, { notify: false });
      store.watch = () => () => {};
      await store.migrate();
      pawl = new Pawl(store);
      for (const name of ["steps", "sleeper", "listener", "parent", "child"]) await pawl.createWorkflow(name);
      const common = {
        url: database.url,
        ledger: ledger.file,
        notify: false,
        deaf: true,
        poll: 100,
        lease: 1_500,
        concurrency: 8,
      };
      workers = [
        new WorkerProcess({ ...common, workflows: ["steps", "parent", "listener", "sleeper"] }),
        new WorkerProcess({ ...common, workflows: ["steps", "child", "listener", "sleeper"] }),
      ];
      await Promise.all(workers.map(({ ready }) => ready));
    });

    afterEach(async () => {
      await killAllProcesses();
      await pawl.close();
      await database.drop();
      ledger.remove();
    });

    const start = <Input, Output>(name: string, input: Input) =>
      pawl.workflow<Input, Output>(name).trigger(...([input] as never));
    const many = <Output>(name: string, inputs: readonly unknown[]) =>
      Promise.all(inputs.map((input) => start<unknown, Output>(name, input)));

    test("starts, timers, signals, children and results are found without a single wake-up", async () => {
      const steps = await many<string[]>("steps", Array(20).fill({ count: 3, ms: 10 }));
      const sleepers = await many<number>("sleeper", Array(5).fill({ ms: 50 }));
      const parents = await many<number[]>("parent", [1, 2, 3]);
      const listeners = await many<unknown[]>("listener", Array(5).fill(null));
      const [patient] = listeners;
      await until(async () => (await patient?.status()) === "waiting");
      // Signals to runs that are parked, about to be parked, or resumed.
      for (const payload of [1, 2]) await Promise.all(listeners.map((run) => run.signal("go", payload)));
      const canceled = await start("listener", null);
      await until(async () => (await canceled.status()) === "waiting");
      await canceled.cancel("enough");

      const signals = await Promise.all(listeners.map((run) => run.result()));
      expect(signals.map((output) => output.slice(0, 2))).toEqual(listeners.map(() => [1, 2]));
      const doubled = await Promise.all(parents.map((run) => run.result()));
      expect(doubled).toEqual([1, 2, 3].map((n) => [n * 2, 2, 4, 6, 8, 10]));
      await Promise.all([...steps, ...sleepers].map((run) => run.result()));
      await expect(canceled.result()).rejects.toThrow("enough");
      if (kind === "postgres") expect(await listeningConnections()).toBe(0);
    });

    test("messages to a run that a worker is executing are delivered by a heartbeat", async () => {
      const run = await start("steps", { count: 1_000, ms: 20 });
      await until(async () => (await run.status()) === "running");
      await ledger.until(() => ledger.ended() > 0);
      await run.cancel("enough");
      await expect(run.result()).rejects.toThrow("enough");
    });

    test("the runs of a killed process are taken over", async () => {
      const runs = await many<string[]>("steps", Array(20).fill({ count: 4, ms: 100 }));
      const [first, second] = workers as [WorkerProcess, WorkerProcess];
      await ledger.until(() => [first, second].every(({ pid }) => ledger.executions().some((one) => one.pid === pid)));
      await first.kill();
      await Promise.all(runs.map((run) => run.result()));
    });

    async function listeningConnections(): Promise<number> {
      const sql = await rawSql(database.url);
      const listening = "datname = current_database() AND query LIKE 'LISTEN%'";
      const rows = await sql.query(`SELECT pid FROM pg_stat_activity WHERE ${listening}`);
      await sql.close();
      return rows.length;
    }
  },
  (["sqlite", "postgres", "mysql", "sqld"] as const).filter((kind) => isAmong(kind, "postgres", "mysql")),
);
