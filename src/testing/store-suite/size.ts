/** The sizes of the tables: what they contain, at a bounded cost. */
import { systemRuntime } from "../../runtime/system.js";
import { tableNames } from "../../store/contract/size.js";
import type { TableName } from "../../store/contract/store.js";
import { batch, event, newRuns, transition } from "./builders.js";
import type { Fixture } from "./fixture.js";

const large = { cap: 10_000 };

export function sizeTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  const readTable = async (name: TableName, options = large) => {
    const { tables } = await fixture.store.maintenance.size(options);
    const table = tables.find((candidate) => candidate.name === name);
    if (table === undefined) throw new Error(`There is no table ${name}.`);
    return table;
  };

  test("an empty database has empty tables, and is described", async () => {
    const { engine, version, bytes, freeBytes, tables } = await fixture.store.maintenance.size(large);
    expect(engine).not.toBe("");
    expect(version === null || version.length > 0).toBe(true);
    for (const size of [bytes, freeBytes]) expect(size === null || (Number.isInteger(size) && size >= 0)).toBe(true);
    const withoutMigrations = tables.filter(({ name }) => name !== "migrations");
    expect(withoutMigrations.map(({ name, rows, rowsAre }) => [name, rows, rowsAre])).toEqual(
      tableNames.filter((name) => name !== "migrations").map((name) => [name, 0, "exact"]),
    );
  });

  test("rows are counted, and their bytes are known or null", async () => {
    const runs = newRuns(5, { due: { kind: "owned" } });
    const worker = await fixture.registerWorker();
    await fixture.startAll(runs, worker);
    await fixture.commit(batch(worker, [transition(runs[0]?.id as string, { events: [event("go")] })]));
    expect(await readTable("runs")).toMatchObject({ rows: 5, rowsAre: "exact" });
    expect(await readTable("tasks")).toMatchObject({ rows: 5, rowsAre: "exact" });
    expect(await readTable("events")).toMatchObject({ rows: 1, rowsAre: "exact" });
    expect(await readTable("workers")).toMatchObject({ rows: 1, rowsAre: "exact" });
    for (const size of [(await readTable("runs")).bytes, (await readTable("runs")).indexBytes])
      expect(size === null || size > 0).toBe(true);
  });

  test("no more rows are counted than asked for", async () => {
    await fixture.startAll(newRuns(5));
    const { rows, rowsAre } = await readTable("runs", { cap: 3 });
    // A database that has statistics may know the number.
    expect(["capped", "estimated"]).toContain(rowsAre);
    expect(rows).toBeGreaterThanOrEqual(3);
    expect(await readTable("queues", { cap: 3 })).toMatchObject({ rows: 0, rowsAre: "exact" });
  });

  test("the migrations that have been applied are listed", async () => {
    const { migrations } = await fixture.store.maintenance.size(large);
    if (!fixture.harness.hasMigrations) return expect(migrations).toEqual([]);
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
    for (const { name, at } of migrations) {
      expect(name).not.toBe("");
      expect(Math.abs(at - systemRuntime.now())).toBeLessThan(600_000);
    }
  });
}
