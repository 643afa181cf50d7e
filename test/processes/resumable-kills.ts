/**
 * One resumable step iterates over many items in a worker process that is killed again and again. All items are
 * processed, and for each killed process at most the item in flight is repeated.
 */
import { connect, type Pawl, type RunHandle } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forEachStore, type StoreKind, type TestDatabase, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses } from "../support/library-process.js";
import { seeded } from "../support/seeded-random.js";
import { until } from "../support/waiting.js";
import { checkItems, ItemLedger } from "./item-ledger.js";
import { ResumableProcess } from "./resumable-process.js";

/** More than the number of crashes after which a run that makes no progress is paused, which is five. */
const kills = sized(6, 10);
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each process that it kills. */
const leaseMs = 60_000;
const timeoutMs = 600_000;
/** More than a process handles between two looks at its progress, so that a kill hits it at any point of its work. */
const itemsPerLook = 400;

export interface Sweeps {
  readonly kind: StoreKind;
  readonly items: number;
}

export function testResumableKills({ kind, items }: Sweeps): void {
  forEachStore(() => {
    let database: TestDatabase;
    let ledger: ItemLedger;
    let pawl: Pawl;

    beforeEach(async () => {
      ledger = new ItemLedger();
      database = await testDatabase(kind);
      pawl = await connect(database.url);
      await pawl.createWorkflow("Sweep");
    });

    afterEach(async () => {
      await killAllProcesses();
      await pawl?.close();
      await database?.drop();
      ledger.remove();
    });

    /** @param endsAfter about how many items are done when the test ends this process; it does not get far beyond */
    const spawn = (endsAfter?: number) =>
      new ResumableProcess({
        url: database.url,
        ledger: ledger.file,
        lease: leaseMs,
        checkpoint: "awaited",
        ...(endsAfter === undefined ? {} : { holdAt: endsAfter + itemsPerLook }),
      });
    const start = (count: number): Promise<RunHandle<{ items: number }, void>> =>
      pawl.workflow<{ items: number }, void>("Sweep").trigger({ items: count });

    /** Resolves when this many items are processed and the log names the latest process. */
    const underway = async (run: RunHandle<any, any>, execution: number, done: number) => {
      await until(() => ledger.length >= done);
      await until(async () => {
        const executions = await run.executions();
        return executions.length === execution && executions.at(-1)?.state === "executing";
      });
    };
    const outcomes = async (run: RunHandle<any, any>) =>
      (await run.executions()).map(({ state, outcome }) => `${state}: ${outcome}`);

    test(`a step over ${items} items survives ${kills} kills of its worker, and each kill repeats at most the item in flight`, {
      timeout: timeoutMs,
    }, async () => {
      const killedAfter = moments(kind, items);
      let worker = spawn(killedAfter[0]);
      await worker.ready;
      const run = await start(items);
      for (const [index, done] of killedAfter.entries()) {
        await underway(run, index + 1, done);
        expect(await worker.kill()).toEqual({ code: null, signal: "SIGKILL" });
        await expireLeaseOf(worker.pid, kind, database.url);
        worker = spawn(killedAfter[index + 1]);
      }
      await run.result();
      expect(await worker.terminate()).toEqual({ code: 0, signal: null });
      expect(worker.output).toBe("");

      const { problems, repeats, processes } = checkItems(ledger.items(), items);
      expect(problems).toEqual([]);
      expect(repeats).toBeLessThanOrEqual(kills);
      // Otherwise a kill hit no worker that was executing.
      expect(processes).toBe(kills + 1);

      expect(await outcomes(run)).toEqual([...Array(kills).fill("failed: abandoned"), "completed: success"]);
      const executions = await run.executions();
      const ids = executions.map(({ id }) => id);
      expect(executions.map(({ continuesFrom }) => continuesFrom)).toEqual([null, ...ids.slice(0, -1)]);
      expect(executions.map(({ successor }) => successor)).toEqual([...ids.slice(1), null]);
      expect(await run.get()).toMatchObject({ status: "completed" });
      expect(await pawl.verify()).toMatchObject({ runs: 1, differences: [] });
    });

    test("a worker that is stopped leaves its step at a checkpoint, and no item is repeated", {
      timeout: timeoutMs,
    }, async () => {
      const some = items / 5;
      const first = spawn(some / 10);
      await first.ready;
      const run = await start(some);
      await underway(run, 1, some / 10);
      expect(await first.terminate()).toEqual({ code: 0, signal: null });
      expect(await outcomes(run)).toEqual(["completed: continued", "scheduled: null"]);

      const second = spawn();
      await run.result();
      expect(await second.terminate()).toEqual({ code: 0, signal: null });
      expect(first.output + second.output).toBe("");

      expect(checkItems(ledger.items(), some)).toEqual({ problems: [], repeats: 0, processes: 2 });
      expect(await outcomes(run)).toEqual(["completed: continued", "completed: success"]);
      const [interrupted, successor] = await run.executions();
      expect(interrupted?.successor).toBe(successor?.id);
      expect(successor?.continuesFrom).toBe(interrupted?.id);
      // The run was handed over, not taken from a dead worker.
      expect((await run.history()).filter(({ type }) => type === "run.recovered")).toEqual([]);
      expect(await pawl.verify()).toMatchObject({ runs: 1, differences: [] });
    });
  }, [kind]);
}

/**
 * After how many items each worker is killed: the same for the same store, whatever the speed of the machine. The last
 * fifth is left out, and a process waits there for its kill, because the step might end before it.
 */
function moments(kind: StoreKind, items: number): number[] {
  const random = seeded([...kind].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 11));
  return Array.from({ length: kills }, () => Math.floor(random() * items * 0.8)).sort((a, b) => a - b);
}
