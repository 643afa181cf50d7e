/**
 * How many statements schedules take: none while they are not due, and a number for each hundred that are due. What one look
 * reads does not grow with the number of schedules that are due.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, Pawl, workflow } from "pawl";
import { VirtualClock } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import type { ScheduleRecord, Store } from "../../src/store/contract/store.js";
import { emptyDatabase, forEachStore, openStore, type StoreKind } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { rawSql } from "../support/raw-sql.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { watchStatements } from "./sent-statements.js";

const dayMs = 86_400_000;
const manySchedules = sized(3_000, 10_000);
const report = workflow("report", async () => {});
const stores = ["sqlite", "postgres", "mysql"] as const;

/** The most statements for a hundred due schedules; SQLite's, which stay in the process, include two for each run. */
const perHundred: Record<(typeof stores)[number], number> = { sqlite: 213, postgres: 12, mysql: 14 };

/** Copies of one schedule under other names. */
async function putMany(
  { pawl, schedules }: { readonly pawl: Pawl; readonly schedules: Store["schedules"] },
  count: number,
  cron: string,
): Promise<void> {
  await pawl.schedules.put("first", { workflow: "report", input: { id: 1 }, cron });
  const [first] = (await schedules.byName(["first"])) as [ScheduleRecord];
  const rows = Array.from({ length: count - 1 }, (_, n) => ({ ...first, name: `copy-${String(n).padStart(5, "0")}` }));
  for (let from = 0; from < rows.length; from += 1_000)
    await schedules.apply({
      changes: rows
        .slice(from, from + 1_000)
        .map((row) => ({ name: row.name, expectedRevision: null, row, occurrences: [], starts: [] })),
    });
}

/** The service by which a worker fires the schedules that were put by the API. */
const firingOf = (pawl: Pawl) =>
  (
    pawl as unknown as { createWorkerSchedules(app: string, declared: null): { fireDue(): Promise<unknown> } }
  ).createWorkerSchedules("default", null);

async function openWorld(kind: StoreKind): Promise<{ store: Store; pawl: Pawl; clock: VirtualClock; url: string }> {
  const database = await emptyDatabase(kind);
  onTestFinished(() => database.drop());
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const store = await openStore(kind, database.url, { clock: clock.read, notify: false });
  onTestFinished(() => store.close());
  await store.migrate();
  return { store, pawl: new Pawl(store, silent), clock, url: database.url };
}

forEachStore<(typeof stores)[number]>((kind) => {
  test("firing 1,000 due schedules takes a bounded number of statements", async () => {
    const { pawl, clock, store, url } = await openWorld(kind);
    await pawl.createWorkflow("report");
    await putMany({ pawl, schedules: store.schedules }, 1_000, "0 0 * * *");
    clock.moveTo(clock.read() + dayMs);
    const sent = await watchStatements(kind);
    sent.clear();
    await firingOf(pawl).fireDue();
    const statements = [...sent.texts];
    const shapes = statements.map((text) => text.replaceAll(/\s+/g, " ").slice(0, 100));
    expect(statements.length, shapes.slice(-40).join("\n")).toBeLessThanOrEqual(10 * perHundred[kind]);
    const sql = await rawSql(url);
    const [row] = await sql.query("SELECT count(*) AS n FROM pawl_runs WHERE schedule IS NOT NULL");
    await sql.close();
    expect(Number(row?.n)).toBe(1_000);
  });

  test(`an idle worker with ${manySchedules} schedules sends no statement that it does not send with none`, async () => {
    const sent = await watchStatements(kind);
    /** The statements about schedules that a worker sends while nothing is due, with their number per heartbeat. */
    const idle = async (schedules: number) => {
      const database = await emptyDatabase(kind);
      onTestFinished(() => database.drop());
      const pawl = await connect(database.url, { logger: silent });
      const store = await openStore(kind, database.url);
      if (schedules > 0) await putMany({ pawl, schedules: store.schedules }, schedules, "0 0 1 1 *");
      await store.close();
      await pawl.worker({ workflows: [report], lease: 3_000 }).start();
      await sleep(1_000);
      sent.clear();
      const heartbeats = () => sent.texts.filter((text) => text.includes("heartbeat_at = ")).length;
      await until(() => heartbeats() >= 4);
      const aboutSchedules = sent.texts.filter((text) => text.includes("schedules"));
      const summary = { texts: [...new Set(aboutSchedules)].sort(), count: aboutSchedules.length, beats: heartbeats() };
      await pawl.close();
      return summary;
    };
    const without = await idle(0);
    const withMany = await idle(manySchedules);
    expect(withMany.texts).toEqual(without.texts);
    // A heartbeat is one statement or has one about schedules.
    expect(withMany.count, withMany.texts.join("\n")).toBeLessThanOrEqual(withMany.beats + 1);
  });
}, stores);
