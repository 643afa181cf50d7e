/**
 * The database has lost the end of a run's log, or says that the run has no owner: the run continues from what is
 * stored.
 */
import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

forEachStore(
  (kind) => {
    async function openWorldAndSql() {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const w = await world(kind, database.url);
      const sql = await rawSql(database.url);
      onTestFinished(() => sql.close());
      return { database, w, sql };
    }

    test("a run whose log lost its last events is replayed from what is left, not paused", async () => {
      const { database, w, sql } = await openWorldAndSql();
      const mayEnd = gate();
      const executed: string[] = [];
      const wf = workflow("shortened", async (ctx) => {
        for (const name of ["a", "b"]) await ctx.step(name, () => void executed.push(name));
        await ctx.step("c", async () => {
          executed.push("c");
          await mayEnd.opened;
        });
        return "done";
      });
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await until(() => executed.includes("c"));
      // The start of a slow step is recorded a little later. Waiting for it keeps the worker from writing between the
      // deletion and the lost connections.
      await until(async () => (await run.history()).some(({ type, node }) => type === "step.started" && node === "c"));
      await sql.query("DELETE FROM pawl_events WHERE seq > 1");
      // No connection survives a fail-over, and only on a new connection does the store check that PostgreSQL still has
      // the last write.
      if (kind === "postgres") await database.cut?.();
      mayEnd.open();
      await worker.settle();
      expect(await run.result({ timeout: "100s" })).toBe("done");
      // Steps that are still recorded do not run again; steps whose record was lost run again at least once.
      expect(executed.filter((name) => name === "a")).toEqual(["a"]);
      expect(executed.slice(3)).toEqual(expect.arrayContaining(["b", "c"]));
      const steps = (await run.history()).filter(({ type }) => type === "step.completed").map(({ node }) => node);
      expect(steps).toEqual(["a", "b", "c"]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("a run that lost its owner in the database is left to the next claim", async () => {
      const { w, sql } = await openWorldAndSql();
      const mayEnd = gate();
      let startedCount = 0;
      const wf = workflow("disowned", (ctx) =>
        ctx.step("only", async () => {
          startedCount += 1;
          await mayEnd.opened;
        }),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await until(() => startedCount === 1);
      await sql.query("UPDATE pawl_tasks SET state = 1, owner = NULL, epoch = NULL, due_at = 0");
      mayEnd.open();
      await until(async () => {
        await worker.settle();
        return (await run.status()) === "completed";
      });
      expect((await w.pawl.verify()).differences).toEqual([]);
    });
  },
  ["sqlite", "postgres", "mysql"],
);
