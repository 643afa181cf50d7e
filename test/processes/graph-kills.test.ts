/**
 * A graph of many nodes, shared by several worker processes: first without faults, then while they are killed
 * at random, including the one that coordinates the graph. Everything completes, every node is recorded once, and only
 * nodes that a killed process was executing were executed twice.
 */
import { connect, type FrozenDag, type HistoryEvent, type Pawl, type RunHandle } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forEachStore, type StoreKind, type TestDatabase, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses } from "../support/library-process.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { seeded } from "../support/seeded-random.js";
import { until } from "../support/waiting.js";
import { checkEffects, checkHashes, checkLog } from "./graph-check.js";
import { GraphProcess } from "./graph-process.js";
import { ItemLedger } from "./item-ledger.js";

/** Concurrent nodes, and one more that depends on all of them. */
const width = sized(200, 2_000);
const processes = 4;
const concurrency = 20;
/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of each process that it kills. */
const leaseMs = 60_000;
const kills = sized(3, 9);
const timeoutMs = 600_000;

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let ledger: ItemLedger;
    let pawl: Pawl;
    let sql: RawSql;
    let stuckNumber: number | null;

    beforeEach(async () => {
      stuckNumber = null;
      ledger = new ItemLedger();
      database = await testDatabase(kind);
      pawl = await connect(database.url);
      sql = await rawSql(database.url);
    });

    afterEach(async () => {
      await killAllProcesses();
      await sql?.close();
      await pawl?.close();
      await database?.drop();
      ledger.remove();
    });

    const spawn = () =>
      new GraphProcess({ url: database.url, ledger: ledger.file, lease: leaseMs, concurrency, stuckNumber });

    async function spawnAll(): Promise<GraphProcess[]> {
      const workers = Array.from({ length: processes }, spawn);
      await Promise.all(workers.map(({ ready }) => ready));
      return workers;
    }

    const build = () =>
      pawl.build("wide", (g) => {
        g.fanOut(Array(width).keys(), { name: (n) => `part_${n}`, job: "Work", args: (number) => ({ number }) });
        g.node("last", { job: "Work", args: { number: width } });
      });

    async function endAll(workers: readonly GraphProcess[]): Promise<void> {
      for (const worker of workers) {
        await worker.ready;
        expect(await worker.terminate()).toEqual({ code: 0, signal: null });
        expect(worker.output).toBe("");
      }
    }

    async function expectSound(run: RunHandle<FrozenDag, void>): Promise<void> {
      const { status, input: dag } = await run.get();
      expect(status).toBe("completed");
      expect(checkLog(await wholeHistory(run), dag)).toEqual([]);
      const nodes = await run.nodes();
      expect(nodes.length).toBe(width + 1);
      expect(nodes.filter(({ state, attempt }) => state !== "completed" || attempt !== 1)).toEqual([]);
      expect(checkHashes(nodes, dag)).toEqual([]);
      // Each node is a run of its own, the graph is one more, and no task is left.
      expect(await pawl.verify()).toMatchObject({ runs: width + 2, differences: [] });
      expect(await sql.query("SELECT DISTINCT status FROM pawl_runs")).toEqual([{ status: "completed" }]);
      for (const table of ["pawl_tasks", "pawl_inbox"]) expect(await sql.query(`SELECT * FROM ${table}`)).toEqual([]);
    }

    /** The process that owns the graph's own run; none while it is parked or ended. */
    async function coordinatorAmong(
      workers: readonly GraphProcess[],
      runId: string,
    ): Promise<GraphProcess | undefined> {
      const ids = await Promise.all(workers.map(({ ready }) => ready));
      return workers[ids.indexOf(await ownerOf(runId))];
    }

    async function ownerOf(runId: string): Promise<string> {
      const [task] = await sql.query(`SELECT owner FROM pawl_tasks WHERE run_id = '${runId}'`);
      return String(task?.owner);
    }

    test("the nodes of a graph are shared by all worker processes, and each is executed once", {
      timeout: timeoutMs,
    }, async () => {
      const workers = await spawnAll();
      const run = await build();
      await run.result();
      await endAll(workers);

      const done = ledger.items();
      expect(checkEffects(done, width + 1, new Set())).toEqual({ problems: [], repeats: 0 });
      const shares = workers.map(({ pid }) => done.filter((one) => one.pid === pid).length);
      expect(Math.min(...shares)).toBeGreaterThan(0);
      await expectSound(run);
    });

    test("a graph survives random kills of its workers: no node is lost, and none is recorded twice", {
      timeout: timeoutMs,
    }, async () => {
      stuckNumber = Math.floor(width / 2);
      const workers = await spawnAll();
      const run = await build();

      const killed = new Set<number>();
      let lostOwners = 0;
      const kill = async (worker: GraphProcess) => {
        await worker.ready;
        expect(await worker.kill()).toEqual({ code: null, signal: "SIGKILL" });
        killed.add(worker.pid);
        if ((await ownerOf(run.id)) === (await worker.ready)) lostOwners += 1;
        await expireLeaseOf(worker.pid, kind, database.url);
        workers[workers.indexOf(worker)] = spawn();
      };
      // A worker is killed while it owns the graph; every third of the others is the coordinator, if there is one. The owner
      // may have parked the graph before the kill reached it: then it is tried again.
      while (lostOwners === 0) {
        let owner: GraphProcess | undefined;
        await until(async () => (owner = await coordinatorAmong(workers, run.id)) !== undefined);
        await kill(owner as unknown as GraphProcess);
      }
      for (const [index, { afterNodes, victim }] of plan(kind).entries()) {
        await until(() => ledger.length >= afterNodes);
        const coordinator = index % 3 === 0 ? await coordinatorAmong(workers, run.id) : undefined;
        await kill(coordinator ?? (workers[victim] as GraphProcess));
      }
      // At least this kill hits a node in flight: without it, the kills might hit nothing, and the test would prove nothing.
      const executesStuck = () => ledger.items().find(({ item }) => item === stuckNumber);
      await until(() => executesStuck() !== undefined);
      const stuck = workers.find(({ pid }) => pid === executesStuck()?.pid);
      if (stuck !== undefined) await kill(stuck);
      await run.result();
      await endAll(workers);

      const { problems, repeats } = checkEffects(ledger.items(), width + 1, killed);
      expect(problems).toEqual([]);
      // A kill can only hit what one worker executes at a time.
      expect(repeats).toBeGreaterThan(0);
      expect(repeats).toBeLessThanOrEqual(killed.size * concurrency);
      const history = await wholeHistory(run);
      expect(history.filter(({ type }) => type === "run.recovered").length).toBeGreaterThan(0);
      await expectSound(run);
    });
  },
  ["sqlite", "postgres"],
);

async function wholeHistory(run: RunHandle<FrozenDag, void>): Promise<HistoryEvent[]> {
  const history: HistoryEvent[] = [];
  for (;;) {
    const page = await run.history({ after: history.length });
    if (page.length === 0) return history;
    history.push(...page);
  }
}

/** Which worker is killed after how many executions: the same for the same store, whatever the speed of the machine. */
function plan(kind: StoreKind): { readonly afterNodes: number; readonly victim: number }[] {
  const random = seeded([...kind].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 13));
  const moments = Array.from({ length: kills - 1 }, () => Math.floor(random() * width * 0.9));
  return moments.sort((a, b) => a - b).map((afterNodes) => ({ afterNodes, victim: Math.floor(random() * processes) }));
}
