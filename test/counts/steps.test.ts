/** What steps cost on PostgreSQL, counted by the server: in statements, and in rows that are written. */
import { connect, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnServer, ownPostgres } from "../../scripts/servers.mjs";
import { isLeftOut } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { StatementLog } from "./statement-log.js";

const runs = 100;
const stepsPerRun = 10;
const steps = runs * stepsPerRun;

describe.skipIf(isLeftOut("postgres"))("100 concurrent runs of 10 inline steps on PostgreSQL", () => {
  let server: OwnServer;
  let statements: string[];

  const inline = workflow("inline", async (ctx, run: number) => {
    let sum = 0;
    for (let n = 1; n <= stepsPerRun; n += 1) {
      sum += await ctx.step(`step_${n}`, () => new Promise<number>((resolve) => setImmediate(resolve, run * n)));
    }
    return sum;
  });

  beforeAll(async () => {
    server = await ownPostgres();
    const log = await StatementLog.of(server);
    const pawl = await connect(server.url);
    await pawl.worker({ workflows: [inline], concurrency: runs }).start();
    const inputs = Array.from({ length: runs }, (_, n) => n);
    statements = await log.during(async () => {
      const handles = await pawl.startMany(inline, inputs);
      const outputs = await Promise.all(handles.map((run) => run.result()));
      expect(outputs).toEqual(inputs.map((n) => n * 55));
    });
    // Connections that are closed have reported everything to the server's statistics.
    await pawl.close();
  }, 300_000);

  afterAll(() => server?.remove());

  test("take at most 0.1 statements per step, including starts, claims, commits, notifications and results", () => {
    expect(statements.length, statements.map((text) => text.slice(0, 80)).join("\n")).toBeLessThanOrEqual(steps * 0.1);
    // A sanity check of the count: nothing is written without a statement.
    expect(statements.length).toBeGreaterThan(stepsPerRun);
  });

  test("write one event row per step", async () => {
    const sql = await rawSql(server.url);
    const rows = await sql.query("SELECT run_id, span, type, data FROM pawl_events");
    await sql.close();
    const stepsIn = (row: (typeof rows)[number]) => {
      if (row.type !== "batch") return row.type === "step.completed" ? 1 : 0;
      const tuples = JSON.parse(String(row.data)) as [string][];
      return tuples.filter(([type]) => type === "step.completed").length;
    };
    const holding = rows.map(stepsIn);
    expect(holding.filter((count) => count > 0).length).toBe(steps);
    expect(Math.max(...holding)).toBe(1);
    // The rest are the starts and ends of the runs, at most one row each.
    expect(rows.length).toBeLessThanOrEqual(steps + 2 * runs);
  });

  test("write no other row per step", async () => {
    const sql = await rawSql(server.url);
    const tables = await sql.query(
      "SELECT relname, n_tup_ins AS inserted, n_tup_upd AS updated, n_tup_del AS deleted FROM pg_stat_user_tables",
    );
    const [events] = await sql.query("SELECT count(*) AS n FROM pawl_events");
    await sql.close();
    const written = (name: string) => {
      const { inserted, updated, deleted } = tables.find(({ relname }) => relname === name) ?? {};
      return { inserted: Number(inserted), updated: Number(updated), deleted: Number(deleted) };
    };
    expect(written("pawl_events")).toEqual({ inserted: Number(events?.n), updated: 0, deleted: 0 });
    // Inserted at the start and updated at the end.
    expect(written("pawl_runs")).toEqual({ inserted: runs, updated: runs, deleted: 0 });
    // Inserted, claimed, and deleted.
    expect(written("pawl_tasks")).toEqual({ inserted: runs, updated: runs, deleted: runs });
    expect(written("pawl_inbox")).toEqual({ inserted: 0, updated: 0, deleted: 0 });
    expect(written("pawl_cursors")).toEqual({ inserted: 0, updated: 0, deleted: 0 });
  });
});
