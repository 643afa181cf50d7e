/** What sleeping runs cost: a row in the queue, and no memory in the worker that parked them. */
import { queryObjects } from "node:v8";
import { connect, workflow } from "pawl";
import { afterEach, expect, test } from "vitest";
import { Turn } from "../../src/worker/turn/turn.js";
import { emptyDatabase, forEachStore, type TestDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";

const runs = 10_000;

forEachStore(
  (kind) => {
    let database: TestDatabase | undefined;
    afterEach(() => database?.drop());

    test("10,000 sleeping runs leave no memory in the worker and one task row each", {
      timeout: 300_000,
    }, async () => {
      database = await emptyDatabase(kind);
      let activations = 0;
      const sleeper = workflow("sleeper", async (ctx) => {
        activations += 1;
        await ctx.sleep("long", "30 days");
      });
      const pawl = await connect(database.url);
      const worker = await pawl.worker({ workflows: [sleeper], concurrency: 1_000 }).start();
      await pawl.startMany(
        sleeper,
        Array.from({ length: runs }, () => undefined),
      );
      const sql = await rawSql(database.url);
      const count = async (from: string) => Number((await sql.query(`SELECT count(*) AS n FROM ${from}`))[0]?.n);
      const asleep = "pawl_tasks WHERE state = 0 AND owner IS NULL AND due_at IS NOT NULL AND pending_messages = 0";
      await until(async () => (await count(asleep)) === runs);
      await until(() => worker.active === 0);

      expect(activations).toBe(runs);
      expect(await count("pawl_tasks")).toBe(runs);
      // One commit parked each of them; nothing else is kept.
      expect(await count("pawl_events")).toBe(runs);
      expect(await count("pawl_inbox")).toBe(0);
      expect(await count("pawl_cursors")).toBe(0);
      // The objects were garbage-collected, not only removed from the counter.
      await until(() => queryObjects(Turn, { format: "count" }) === 0);
      await sql.close();
      await pawl.close();
    });
  },
  ["sqlite", "postgres"],
);
