/** `pawl.verify()` finds schedules and occurrences that nothing would ever look at. The rows are damaged by hand. */
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { silent } from "../support/virtual-worlds.js";

const id = "01990000-0000-7000-8000-000000000001";
const occurrence = (outcome: string, pending: string) =>
  `INSERT INTO pawl_occurrences (id, schedule, incarnation, scheduled_for, scheduled_until, occurrence_count, outcome, pending, at, detail)
   VALUES ('${id}', 'yearly', 'x', 1000, 1000, 1, '${outcome}', '${pending}', 1000, '{}')`;
const pause = "UPDATE pawl_schedules SET status = 'paused', next_at = NULL";

const damages: readonly (readonly [name: string, statements: readonly string[], expected: readonly string[]])[] = [
  ["an occurrence counts as open without a run", [occurrence("ran", "open")], ["occurrence.stuck"]],
  [
    "an occurrence of a backfill counts as open without a run",
    [occurrence("ran", "backfill_open")],
    ["occurrence.stuck"],
  ],
  ["an occurrence waits for nothing", [occurrence("buffered", "waiting")], ["occurrence.stuck"]],
  [
    "a backfill waits for nothing, also in a paused schedule",
    [occurrence("buffered", "backfill_waiting"), pause],
    ["occurrence.stuck"],
  ],
  ["what waits in a paused schedule is right", [occurrence("buffered", "waiting"), pause], []],
  [
    "what a worker is about to look at is right",
    [occurrence("ran", "open"), "UPDATE pawl_schedules SET next_at = 1000"],
    [],
  ],
  ["an active schedule has no time", ["UPDATE pawl_schedules SET next_at = NULL"], ["schedule.stuck"]],
  ["a definition cannot be read", ["UPDATE pawl_schedules SET definition = '{'"], ["row.unreadable"]],
];

const stores: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql"];
forEachStore((kind) => {
  test.each(damages)("%s", async (_, statements, expected) => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const pawl = await connect(url, { logger: silent });
    onTestFinished(() => pawl.close());
    await pawl.schedules.put("yearly", { workflow: "report", input: {}, cron: "0 0 1 1 *" });
    expect((await pawl.verify()).differences).toEqual([]);
    const sql = await rawSql(url);
    for (const statement of statements) await sql.query(statement);
    await sql.close();
    expect((await pawl.verify()).differences.map((difference) => difference.kind)).toEqual(expected);
  });
}, stores);
