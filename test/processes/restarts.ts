/**
 * The database server crashes under load, again and again, and comes back. The workers and the client are not
 * restarted: they reconnect by themselves. Their leases outlast every crash, so no body of a step runs a second time.
 */
import { connect, type RunHandle } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { OwnServer } from "../../scripts/servers.mjs";
import { type AnyStoreKind, forEachStore } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { killAllProcesses } from "../support/library-process.js";
import { rawSql } from "../support/raw-sql.js";
import { checkDatabase } from "./checker.js";
import { Ledger } from "./ledger.js";
import { checkLedger } from "./ledger-check.js";
import { WorkerProcess } from "./worker-process.js";

const processes = 3;
const runsPerCrash = sized(15, 30);
const stepsPerRun = 4;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

interface Input {
  readonly count: number;
  readonly ms: number;
}

interface Crashes {
  readonly kind: AnyStoreKind;
  readonly server: () => Promise<OwnServer>;
  readonly crashes: number;
}

export function testRestarts({ kind, server: startServer, crashes }: Crashes): void {
  forEachStore(() => {
    let server: OwnServer;
    let ledger: Ledger;

    beforeEach(async () => {
      ledger = new Ledger();
      server = await startServer();
    }, 120_000);

    afterEach(async () => {
      await killAllProcesses();
      await server?.remove();
      ledger.remove();
    });

    test(`workers and clients survive ${crashes} crashes of the server: nothing is lost, and nothing is done twice`, {
      timeout: 180_000,
    }, async () => {
      const { url } = server;
      const pawl = await connect(url, { logger: silent });
      await pawl.createWorkflow("steps");
      const steps = pawl.workflow<Input, string[]>("steps");
      const worker = () => new WorkerProcess({ url, ledger: ledger.file, lease: 600_000, concurrency: 10, poll: 200 });
      const workers = Array.from({ length: processes }, worker);
      await Promise.all(workers.map(({ ready }) => ready));

      let starts = 0;
      // A client whose start failed retries it with the same key, so the run exists once.
      const start = async (): Promise<RunHandle<Input, string[]>> => {
        const idempotencyKey = `start-${++starts}`;
        for (;;) {
          try {
            return await steps.trigger({ count: stepsPerRun, ms: 200 }, { idempotencyKey });
          } catch (error) {
            expect(error).toMatchObject({ code: "STORE_ERROR", transient: true });
          }
        }
      };
      const startSome = (count: number) => Promise.all(Array.from({ length: count }, start));

      const handles = await startSome(runsPerCrash);
      // The results are awaited from the beginning, through every crash.
      const results = handles.map((run) => run.result());
      for (let crash = 1; crash <= crashes; crash += 1) {
        const halfOfTheWork = (crash - 0.5) * runsPerCrash * stepsPerRun;
        await ledger.until(() => ledger.ended() >= halfOfTheWork);
        const [more] = await Promise.all([startSome(runsPerCrash), server.restartImmediate()]);
        handles.push(...more);
        results.push(...more.map((run) => run.result()));
      }

      const outputs = await Promise.all(results);
      expect(outputs.every((tokens) => tokens.length === stepsPerRun)).toBe(true);
      expect(await Promise.all(workers.map((each) => each.stop()))).toEqual(
        workers.map(() => ({ code: 0, signal: null })),
      );
      expect(workers.map(({ output }) => output).join("")).toBe("");
      // Some worker noticed, otherwise the crashes came while nothing was sent. (One worker may be between two
      // statements.)
      expect(workers.some(({ complaints }) => complaints.length > 0)).toBe(true);

      const sql = await rawSql(url);
      const { problems, results: recorded } = await checkDatabase(sql, { runIds: handles.map(({ id }) => id) });
      await sql.close();
      expect(problems).toEqual([]);
      expect(recorded.size).toBe(handles.length * stepsPerRun);
      expect(checkLedger(ledger.executions(), recorded, new Set())).toEqual({ problems: [], repeats: 0 });
      expect(await pawl.verify()).toMatchObject({ runs: handles.length, differences: [] });
      await pawl.close();
    });
  }, [kind]);
}
