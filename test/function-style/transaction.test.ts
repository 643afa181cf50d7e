/** Transactional steps: the user's writes and the step's record commit together, on each database. */
import { PermanentError, workflow } from "pawl";
import { crashTest } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { logOf } from "../support/run-checks.js";
import { mysqlTable, postgresTable, sqldTable, sqliteTable } from "../support/user-table.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

const tables = { sqlite: sqliteTable, sqld: sqldTable, postgres: postgresTable, mysql: mysqlTable };

forEachStore(
  (kind) => {
    async function openWorldWithTable() {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const table = tables[kind as keyof typeof tables](() => database.url);
      await table.create();
      return { url: database.url, table, w: await world(kind, database.url) };
    }

    test("the writes and the record are committed together, once, even when the run is replayed", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("transactional", async (ctx) => {
        const value = await ctx.transaction("write", async (tx, step) => {
          await table.write(tx, step.idempotencyKey);
          return step.attempt;
        });
        await ctx.sleep("replay", "1h");
        return value;
      });
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
      expect(await run.result({ timeout: "100s" })).toBe(1);
      expect(await table.committedValues()).toEqual([`${run.id}:write`]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("an attempt that throws is rolled back, and the next attempt starts without its writes", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("retried", (ctx) =>
        ctx.transaction("write", async (tx, { attempt }) => {
          await table.write(tx, `attempt ${attempt}`);
          if (attempt < 3) throw new Error("again");
        }),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
      expect(await run.status()).toBe("completed");
      expect(await table.committedValues()).toEqual(["attempt 3"]);
    });

    test("a step that fails for good leaves no writes behind", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("failing", (ctx) =>
        ctx.transaction("write", async (tx) => {
          await table.write(tx, "never seen");
          throw new PermanentError("no");
        }),
      );
      const unstorable = workflow("unstorable", (ctx) =>
        ctx.transaction("write", async (tx) => {
          await table.write(tx, "never seen");
          return () => {};
        }),
      );
      const worker = await w.worker([wf, unstorable]);
      const [failed, refused] = [await w.pawl.start(wf), await w.pawl.start(unstorable)];
      await worker.settle();
      expect((await errorOf(failed.result({ timeout: "100s" }))).cause.message).toBe("no");
      expect((await errorOf(refused.result({ timeout: "100s" }))).cause.code).toBe("SERIALIZATION_ERROR");
      expect(await table.committedValues()).toEqual([]);
    });

    test("flow control in the step rolls its writes back: skip, reattempt, finish, cancel", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("leaving", async (ctx, how: "skip" | "reattempt" | "finish" | "cancel") =>
        ctx.transaction("write", async (tx, { attempt }) => {
          await table.write(tx, `${how} ${attempt}`);
          if (attempt > 1) return;
          if (how === "finish") ctx.finish("early");
          else ctx[how]();
        }),
      );
      const worker = await w.worker([wf]);
      const runs = [];
      for (const how of ["skip", "reattempt", "finish", "cancel"] as const) runs.push(await w.pawl.start(wf, how));
      await worker.settle();
      expect(await Promise.all(runs.map((run) => run.status()))).toEqual([
        "completed",
        "completed",
        "completed",
        "canceled",
      ]);
      expect(await table.committedValues()).toEqual(["reattempt 2"]);
    });

    test("a time limit rolls the writes back", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("slow", (ctx) =>
        ctx.transaction(
          "write",
          async (tx, { attempt }) => {
            await table.write(tx, `attempt ${attempt}`);
            if (attempt === 1) await new Promise(() => {});
          },
          { timeout: 100 },
        ),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
      expect(await run.status()).toBe("completed");
      expect(await table.committedValues()).toEqual(["attempt 2"]);
    });

    test("when a worker is declared dead during a transaction, only one of the two executions commits", async () => {
      const { table, w } = await openWorldWithTable();
      const started = gate();
      const release = gate();
      let executions = 0;
      const wf = workflow("dying", (ctx) =>
        ctx.transaction("write", async (tx) => {
          executions += 1;
          await table.write(tx, `execution ${executions}`);
          if (executions > 1) return;
          started.open();
          await release.opened;
        }),
      );
      const first = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await started.opened;
      // SQLite has one writer: the transaction must end before another connection can write, as it does when a process
      // dies.
      const killed = first.kill();
      release.open();
      await killed;
      const second = await w.worker([wf]);
      await second.settle();
      expect(await run.status()).toBe("completed");
      // Which execution commits depends on which one had the lock first. In both cases there is one effect and one
      // record.
      const written = await table.committedValues();
      expect([["execution 1"], ["execution 2"]]).toContainEqual(written);
      expect((await logOf(run)).filter((line) => line === "step.completed write")).toHaveLength(1);
    });

    test("crashes before and after each commit change nothing: each write is committed exactly once", async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const table = tables[kind as keyof typeof tables](() => database.url);
      await table.create();
      let trials = 0;
      const wf = workflow("exactly-once", async (ctx) => {
        await ctx.step("before", () => 1);
        await ctx.transaction("first", (tx) => table.write(tx, `${ctx.runId} first`));
        await ctx.sleep("nap", "1h");
        await ctx.transaction("second", (tx) => table.write(tx, `${ctx.runId} second`));
        return "done";
      });
      const report = await crashTest(wf, undefined, { store: database.url, setup: () => void (trials += 1) });
      expect(report.points).toBeGreaterThanOrEqual(8);
      const written = await table.committedValues();
      expect(written).toHaveLength(2 * trials);
      expect(new Set(written).size).toBe(2 * trials);
    });

    test("steps, signals and other runs proceed while a transaction is open", async () => {
      const { table, w } = await openWorldWithTable();
      const started = gate();
      const wf = workflow("beside", async (ctx) =>
        Promise.all([
          ctx.transaction("write", async (tx) => {
            started.open();
            // Before its first statement an SQLite transaction must not block the others.
            await new Promise((resolve) => setTimeout(resolve, 20));
            await table.write(tx, "mine");
            return "written";
          }),
          ctx.step("step", () => "step"),
          ctx.waitForSignal("go"),
        ]),
      );
      const other = workflow("other", (ctx) => ctx.step("quick", () => "quick"));
      const worker = await w.worker([wf, other]);
      const run = await w.pawl.start(wf);
      await started.opened;
      const [quick] = await Promise.all([w.pawl.start(other), run.signal("go", "signal")]);
      await worker.settle();
      expect(await run.result({ timeout: "100s" })).toEqual(["written", "step", "signal"]);
      expect(await quick.result({ timeout: "100s" })).toBe("quick");
    });

    test("twenty concurrent runs with a transaction each all write once", async () => {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("many", (ctx, n: number) => ctx.transaction("write", (tx) => table.write(tx, `${n}`)));
      const worker = await w.worker([wf]);
      const runs = await w.pawl.startMany(
        wf,
        Array.from({ length: 20 }, (_, n) => n),
      );
      await worker.settle();
      expect(new Set(await Promise.all(runs.map((run) => run.status())))).toEqual(new Set(["completed"]));
      expect((await table.committedValues()).map(Number).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, n) => n),
      );
    });
  },
  ["sqlite", "postgres", "mysql", "sqld"],
);
