/** The database has less of a run than its owner wrote, or says that the run is not its owner's: the run goes on from what is there. */
import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

forEachStore(
  (kind) => {
    async function prepared() {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const w = await world(kind, database.url);
      const sql = await rawSql(database.url);
      onTestFinished(() => sql.close());
      return { database, w, sql };
    }

    test("a run whose log lost its end is replayed from there, not paused", async () => {
      const { database, w, sql } = await prepared();
      const mayEnd = gate();
      const did: string[] = [];
      const wf = workflow("shortened", async (ctx) => {
        for (const name of ["a", "b"]) await ctx.step(name, () => void did.push(name));
        await ctx.step("c", async () => {
          did.push("c");
          await mayEnd.opened;
        });
        return "done";
      });
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await until(() => did.includes("c"));
      await sql.query("DELETE FROM pawl_events WHERE seq > 1");
      // No connection survives a fail-over. PostgreSQL is asked only on new ones whether it still has what was written.
      if (kind === "postgres") await database.cut?.();
      mayEnd.open();
      await worker.settle();
      expect(await run.result({ timeout: "100s" })).toBe("done");
      // What is recorded is not done again; what is not recorded any more is, at least once.
      expect(did.filter((name) => name === "a")).toEqual(["a"]);
      expect(did.slice(3)).toEqual(expect.arrayContaining(["b", "c"]));
      const steps = (await run.history()).filter(({ type }) => type === "step.completed").map(({ node }) => node);
      expect(steps).toEqual(["a", "b", "c"]);
      expect((await w.pawl.verify()).differences).toEqual([]);
    });

    test("a run that the database gave to no worker is left to the next claim", async () => {
      const { w, sql } = await prepared();
      const mayEnd = gate();
      let begun = 0;
      const wf = workflow("disowned", (ctx) =>
        ctx.step("only", async () => {
          begun += 1;
          await mayEnd.opened;
        }),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await until(() => begun === 1);
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
