/**
 * Processes wake each other. Nothing here polls: workers never poll and send a heartbeat once an hour, and the
 * intervals of this process, by which a client polls for results, stand still. A lost wake-up shows as a test that
 * hangs. (MySQL and MariaDB have no notifications; there, everything depends on polling.)
 */
import { connect, type Pawl } from "pawl";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { killAllProcesses } from "../support/library-process.js";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { Ledger } from "./ledger.js";
import { WorkerProcess, type WorkerProcessOptions } from "./worker-process.js";

const hourMs = 3_600_000;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let ledger: Ledger;
    let pawl: Pawl;

    beforeEach(async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      database = await testDatabase(kind);
      ledger = new Ledger();
      pawl = await connect(database.url, { logger: silent, ...database.direct });
      for (const name of ["steps", "sleeper", "listener", "parent", "child"]) await pawl.createWorkflow(name);
    });

    afterEach(async () => {
      await killAllProcesses();
      await pawl.close();
      await database.drop();
      ledger.remove();
      vi.useRealTimers();
    });

    const work = async (workflows: string[], options: Partial<WorkerProcessOptions> = {}) => {
      const { url, direct } = database;
      const common = { url, ...direct, ledger: ledger.file, workflows, poll: "never", lease: hourMs } as const;
      const worker = new WorkerProcess({ ...common, ...options });
      await worker.ready;
      return worker;
    };

    const start = <Input, Output>(name: string, input: Input) =>
      pawl.workflow<Input, Output>(name).trigger(...([input] as never));

    test("starts, sequential and concurrent, wake a worker in another process, and its results wake the client", async () => {
      await work(["steps"], { concurrency: 10 });
      for (let n = 0; n < 10; n += 1) await (await start("steps", { count: 2, ms: 1 })).result();
      const runs = await Promise.all(Array.from({ length: 100 }, () => start("steps", { count: 3, ms: 5 })));
      await Promise.all(runs.map((run) => run.result()));
      expect(ledger.executions().length).toBe(320);
    });

    test("signals reach a run that another process has parked or is about to park", async () => {
      const worker = await work(["listener"]);
      const runs = await Promise.all(Array.from({ length: 20 }, () => start("listener", null)));
      const [patient] = runs;
      await until(async () => (await patient?.status()) === "waiting");
      await Promise.all(runs.map((run) => run.signal("go", 1)));
      await Promise.all(runs.map((run) => run.signal("go", 2)));
      const outputs = await Promise.all(runs.map((run) => run.result()));
      expect(outputs).toEqual(runs.map(() => [1, 2, worker.pid]));
    });

    test("children in one process wake their parents in another", async () => {
      await work(["parent"]);
      await work(["child"], { concurrency: 2 });
      const runs = await Promise.all(Array.from({ length: 5 }, (_, n) => start("parent", n)));
      const outputs = await Promise.all(runs.map((run) => run.result()));
      expect(outputs).toEqual(runs.map((_, n) => [n * 2, 2, 4, 6, 8, 10]));
    });

    test("a cancellation reaches a parent and its child in other processes", async () => {
      // No worker executes the child, so its parent waits for it.
      await work(["parent"]);
      const run = await start("parent", 1);
      await until(async () => (await run.status()) === "waiting");
      await run.cancel("enough");
      await expect(run.result()).rejects.toThrow("enough");
    });

    test("a delayed start and a sleep end in time", async () => {
      await work(["sleeper"]);
      const sleepers = pawl.workflow<{ ms: number }, number>("sleeper");
      const runs = await Promise.all([
        sleepers.trigger({ ms: 50 }),
        sleepers.trigger({ ms: 20 }, { delay: 100 }),
        sleepers.trigger({ ms: 5 }, { delay: 40 }),
      ]);
      await Promise.all(runs.map((run) => run.result()));
    });

    /**
     * The first process must be gone before its timers fire. Where the machine is too slow for that, the scenario is
     * repeated with twice the time; returns whether it was in time.
     */
    const untilInTime = async (story: (ms: number) => Promise<boolean>) => {
      for (let ms = 1_000; !(await story(ms)); ms *= 2) await killAllProcesses();
    };
    const sleep = async (ms: number) => {
      const dueAfter = Date.now() + ms;
      const run = await start<{ ms: number }, number>("sleeper", { ms });
      await until(async () => ["waiting", "completed"].includes(await run.status()));
      return { run, dueAfter };
    };

    test(
      "a timer of a run that one process parked fires in another process after the first stops",
      { timeout: 300_000 },
      () =>
        untilInTime(async (ms) => {
          const first = await work(["sleeper"]);
          const { run, dueAfter } = await sleep(ms);
          // The second worker starts without a reason to poll: its routes have no due runs, and it learns about this run
          // later.
          const second = await work(["sleeper", "steps"]);
          const { run: late } = await sleep(ms + 200);
          expect(await first.stop()).toEqual({ code: 0, signal: null });
          if (Date.now() >= dueAfter) return false;
          expect(await Promise.all([run.result(), late.result()])).toEqual([second.pid, second.pid]);
          return true;
        }),
    );

    test(
      "a timer of a run that one process parked fires in another process after the first is killed",
      { timeout: 300_000 },
      () =>
        untilInTime(async (ms) => {
          const second = await work(["sleeper"], { lease: 600 });
          // The second process is frozen, so that the first parks the run without the second noticing.
          second.freeze();
          const first = await work(["sleeper"], { lease: 600 });
          const { run, dueAfter } = await sleep(ms);
          await first.kill();
          const isInTime = Date.now() < dueAfter;
          second.thaw();
          if (!isInTime) return false;
          expect(await run.result()).toBe(second.pid);
          return true;
        }),
    );

    test("the runs of a process are resumed by another process when the first stops or is killed", {
      timeout: 300_000,
    }, async () => {
      const second = await work(["steps"], { lease: 600, concurrency: 1 });
      const first = await work(["steps"], { lease: 600, concurrency: 50 });
      const startSome = () => Promise.all(Array.from({ length: 8 }, () => start("steps", { count: 3, ms: 300 })));
      const runs = await startSome();
      await ledger.until(() => ledger.executions().some(({ pid }) => pid === first.pid));
      await first.kill();
      const third = await work(["steps"], { lease: 600, concurrency: 50 });
      // The second, with a concurrency of one, may have executed all the others while the third was starting.
      runs.push(...(await startSome()));
      await ledger.until(() => ledger.executions().some(({ pid }) => pid === third.pid));
      await third.stop();
      await Promise.all(runs.map((run) => run.result()));
      expect(ledger.executions().some(({ pid }) => pid === second.pid)).toBe(true);
    });

    if (kind === "postgres") {
      test("listening connections that are cut are reopened, and missed notifications are made up for", async () => {
        const worker = await work(["listener", "steps"]);
        const sql = await rawSql(database.url);
        const listening = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        const listeners = async () => (await sql.query(`SELECT pid ${listening}`)).length;
        const cut = () => sql.query(`SELECT pg_terminate_backend(pid) ${listening}`);
        // A client listens from its first wait for a result.
        await (await start("steps", { count: 1, ms: 1 })).result();
        for (let round = 0; round < 5; round += 1) {
          // This process's and the worker's.
          await until(async () => (await listeners()) === 2);
          await cut();
          const [one, other] = await Promise.all([start("steps", { count: 3, ms: 5 }), start("listener", null)]);
          await other.signal("go", 1);
          await cut();
          await other.signal("go", 2);
          await one.result();
          expect(await other.result()).toEqual([1, 2, worker.pid]);
        }
        await sql.close();
      });
    }
  },
  ["sqlite", "postgres"],
);
