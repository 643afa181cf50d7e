/** The input of a start is written to one place. Queue entries and messages refer to the run and do not contain it. */
import { connect, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { silent } from "../support/virtual-worlds.js";

const databases: readonly StoreKind[] = ["sqlite", "postgres", "mysql"];
const marker = "a-text-that-is-nowhere-else";

const tables = ["pawl_runs", "pawl_tasks", "pawl_events", "pawl_inbox", "pawl_cursors", "pawl_workflows"];

forEachStore((kind) => {
  test("the input of a run is stored only in its row, before the run starts and while it waits", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const pawl = await connect(database.url, { logger: silent });
    onTestFinished(() => pawl.close());
    const sql = await rawSql(database.url);
    onTestFinished(() => sql.close());

    const places = async () => {
      const found: string[] = [];
      for (const table of tables) {
        for (const row of await sql.query(`SELECT * FROM ${table}`))
          for (const [column, value] of Object.entries(row))
            if (JSON.stringify(value)?.includes(marker)) found.push(`${table}.${column}`);
      }
      return found;
    };

    const patient = workflow("patient", async (ctx, _input: { text: string }) => {
      await ctx.step("work", () => "done");
      await ctx.waitForSignal("go");
    });
    const run = await pawl.start(patient, { text: marker });
    expect(await places()).toEqual(["pawl_runs.input"]);
    const worker = pawl.worker({ workflows: [patient] });
    await worker.start();
    await worker.runUntilIdle();
    expect(await run.status()).toBe("waiting");
    expect(await places()).toEqual(["pawl_runs.input"]);
  });
}, databases);
