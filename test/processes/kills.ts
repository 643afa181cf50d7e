/**
 * Workers are killed at random while they work, again and again. Everything completes, every step is recorded once, and
 * only bodies that a killed process had in flight ran twice.
 */
import { connect } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type AnyStoreKind, forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses } from "../support/library-process.js";
import { rawSql } from "../support/raw-sql.js";
import { seeded } from "../support/seeded-random.js";
import { checkDatabase } from "./checker.js";
import { Ledger } from "./ledger.js";
import { checkLedger } from "./ledger-check.js";
import { WorkerProcess } from "./worker-process.js";

interface Scenario {
  readonly processes: number;
  readonly concurrency: number;
  readonly runs: number;
  /** How long a step takes. */
  readonly ms: number;
  readonly kills: number;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "runs survive random kills of their workers: nothing is lost, and nothing is recorded twice": {
    processes: sized(3, 4),
    concurrency: 6,
    runs: sized(48, 120),
    ms: 160,
    kills: sized(3, 10),
  },
  // Hundreds of runs share each commit, with two commits in flight at a time.
  "no run is lost when a worker with a thousand runs is killed": {
    processes: 1,
    concurrency: 1000,
    runs: sized(1_000, 1_200),
    ms: 1,
    kills: sized(1, 3),
  },
};
const stepsPerRun = 5;
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each process that it kills. */
const leaseMs = 60_000;
const timeoutMs = 600_000;

export function testKills(kind: AnyStoreKind): void {
  let database: TestDatabase | undefined;
  let ledger: Ledger;

  beforeEach(() => {
    ledger = new Ledger();
  });

  afterEach(async () => {
    await killAllProcesses();
    await database?.drop();
    ledger.remove();
  });

  forEachStore(() => {
    test.each(Object.entries(scenarios))("%s", { timeout: timeoutMs }, async (_, scenario) => {
      const { processes, concurrency, runs, ms, kills } = scenario;
      database = await testDatabase(kind);
      const { url } = database;
      const pawl = await connect(url);
      await pawl.createWorkflow("steps");
      const steps = pawl.workflow<{ count: number; ms: number }, string[]>("steps");

      // On a busy machine, every kill may hit the same run before its first commit. It must not be paused for that here.
      const maxDeliveries = kills + 1;
      const spawn = () => new WorkerProcess({ url, ledger: ledger.file, lease: leaseMs, concurrency, maxDeliveries });
      const workers = Array.from({ length: processes }, spawn);
      await Promise.all(workers.map(({ ready }) => ready));
      const handles = await Promise.all(Array.from({ length: runs }, () => steps.trigger({ count: stepsPerRun, ms })));

      const killed = new Set<number>();
      for (const { afterSteps, victim } of plan(kind, scenario)) {
        await ledger.until(() => ledger.ended() >= afterSteps);
        const worker = workers[victim] as WorkerProcess;
        await worker.ready;
        expect(await worker.kill()).toEqual({ code: null, signal: "SIGKILL" });
        killed.add(worker.pid);
        await expireLeaseOf(worker.pid, kind, url);
        workers[victim] = spawn();
      }

      const outputs = await Promise.all(handles.map((run) => run.result()));
      expect(outputs.every((tokens) => tokens.length === stepsPerRun)).toBe(true);
      for (const worker of workers) await worker.ready;
      expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual(
        workers.map(() => ({ code: 0, signal: null })),
      );
      expect(workers.map(({ output }) => output).join("")).toBe("");

      const sql = await rawSql(url);
      const { problems, results } = await checkDatabase(sql, { runIds: handles.map(({ id }) => id) });
      await sql.close();
      expect(problems).toEqual([]);
      expect(results.size).toBe(runs * stepsPerRun);
      const { problems: doubts, repeats } = checkLedger(ledger.executions(), results, killed);
      expect(doubts).toEqual([]);
      // A kill can only hit what one worker executes at a time; and if no kill hit anything, this tested nothing.
      expect(repeats).toBeGreaterThan(0);
      expect(repeats).toBeLessThanOrEqual(kills * concurrency);
      expect(await pawl.verify()).toMatchObject({ runs, differences: [] });
      await pawl.close();
    });
  }, [kind]);
}

/** Which worker is killed after how many steps: the same for the same store, whatever the speed of the machine. */
function plan(
  kind: AnyStoreKind,
  { runs, kills, processes }: Scenario,
): { readonly afterSteps: number; readonly victim: number }[] {
  const random = seeded([...kind].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7));
  const moments = Array.from({ length: kills }, () => 20 + Math.floor(random() * (runs * stepsPerRun - 150)));
  return moments.sort((a, b) => a - b).map((afterSteps) => ({ afterSteps, victim: Math.floor(random() * processes) }));
}
