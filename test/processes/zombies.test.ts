/**
 * A worker process is stopped until its lease has expired, in the middle of a step. Another worker finishes its runs.
 * When the first continues, it does not know yet that it is considered dead: its fence must refuse its writes, and it
 * must start a new session.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses } from "../support/library-process.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { checkDatabase } from "./checker.js";
import { Ledger } from "./ledger.js";
import { WorkerProcess } from "./worker-process.js";

/** Long, so that a process that waits for the processor keeps its runs. The test expires the lease of the process that it freezes. */
const leaseMs = 60_000;
const concurrency = 8;

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let ledger: Ledger;
    let sql: RawSql;

    beforeEach(async () => {
      database = await testDatabase(kind);
      ledger = new Ledger();
    });

    afterEach(async () => {
      await killAllProcesses();
      await sql.close();
      await database.drop();
      ledger.remove();
    });

    const workerRow = async (id: string) => {
      const [row] = await sql.query(`SELECT epoch, live FROM pawl_workers WHERE id = '${id}'`);
      return { epoch: Number(row?.epoch), isLive: isTrue(row?.live) };
    };

    test("a worker that continues after its lease expired cannot write anything, takes a new epoch and works again", {
      timeout: 300_000,
    }, async () => {
      const { url } = database;
      const pawl = await connect(url);
      sql = await rawSql(url);
      await pawl.createWorkflow("steps");
      const steps = pawl.workflow<{ count: number; ms: number; gatedStep?: number }, string[]>("steps");
      const start = (count: number, input: { count: number; ms: number; gatedStep?: number }) =>
        Promise.all(Array.from({ length: count }, () => steps.trigger(input)));

      // The future zombie claims more runs than it can start: the first of them blocks at its third step.
      const gate = join(ledger.folder, "gate");
      const zombie = new WorkerProcess({ url, ledger: ledger.file, lease: leaseMs, concurrency, gate });
      const zombieId = await zombie.ready;
      const held = await start(concurrency, { count: 4, ms: 10, gatedStep: 3 });
      await ledger.until(() => ledger.executions().some(({ step, ended }) => step === "step_3" && ended === null));
      zombie.freeze();
      const caught = ledger.executions().filter(({ step }) => step === "step_3");
      expect(caught.length).toBe(1);

      const other = new WorkerProcess({ url, ledger: ledger.file, lease: leaseMs, concurrency });
      await other.ready;
      await expireLeaseOf(zombie.pid, kind, url);
      const outputs = await Promise.all(held.map((run) => run.result()));
      expect(await workerRow(zombieId)).toMatchObject({ epoch: 1, isLive: false });
      const before = await sql.query("SELECT count(*) AS n FROM pawl_events");

      // It continues from its step into the commit of that step, before any of its own timers could tell it that it is
      // late.
      writeFileSync(gate, "");
      zombie.thaw();
      await zombie.until(({ commits }) => commits.some(({ result }) => result === "fenced"));
      await zombie.until(({ complaints }) => complaints.some((text) => text.includes("lost its lease (epoch 1)")));
      await until(async () => (await workerRow(zombieId)).isLive);
      expect((await workerRow(zombieId)).epoch).toBe(2);
      expect(await sql.query("SELECT count(*) AS n FROM pawl_events")).toEqual(before);
      expect(zombie.commits.filter(({ epoch }) => epoch === 1).at(-1)?.result).toBe("fenced");
      const late = ledger.executions().find(({ token }) => token === caught[0]?.token);
      expect(late?.ended).not.toBeNull();
      expect(outputs.flat()).not.toContain(late?.token);

      // As the only worker again, it executes all runs.
      expect(await other.stop()).toEqual({ code: 0, signal: null });
      const further = await start(20, { count: 3, ms: 10 });
      await Promise.all(further.map((run) => run.result()));
      const furtherIds = new Set(further.map(({ id }) => id));
      const workedOn = ledger.executions().filter(({ runId }) => furtherIds.has(runId));
      expect(workedOn.length).toBe(60);
      expect(workedOn.every(({ pid }) => pid === zombie.pid)).toBe(true);
      expect(zombie.commits.some(({ epoch, result }) => epoch === 2 && result === "committed")).toBe(true);
      expect(await zombie.stop()).toEqual({ code: 0, signal: null });

      const { problems } = await checkDatabase(sql, { runIds: [...held, ...further].map(({ id }) => id) });
      expect(problems).toEqual([]);
      expect((await pawl.verify()).differences).toEqual([]);
      await pawl.close();
    });
  },
  ["sqlite", "postgres", "mysql"],
);

/** A boolean as the drivers of the three databases return it. */
const isTrue = (value: unknown): boolean => value === true || Number(value) === 1;
