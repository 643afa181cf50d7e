/** No statement about schedules reads a whole table, whatever the statistics say. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CapturedStatement, captureStatements } from "../../../test/scale/statement-capture.js";
import { emptyDatabase, isLeftOut, openStore, type TestDatabase } from "../../../test/support/databases.js";
import { findBadScans, findFullScans, findUnlimitedScans, literal } from "../../../test/support/query-plans.js";
import { batch, newRuns, workerInfo } from "../../testing/store-suite/builders.js";
import {
  creation,
  deletion,
  endOf,
  newOccurrence,
  runOf,
  scheduleApp,
  scheduleRow,
  update,
} from "../../testing/store-suite/schedule-fixture.js";
import type { Store } from "../contract/store.js";
import { sessionSettings } from "./connection/session-settings.js";

const hasScheduleTable = ({ sql }: CapturedStatement) => /pawl_(schedules|occurrences|schedule_apps)/.test(sql);

describe.skipIf(isLeftOut("postgres"))("the statements about schedules", () => {
  let database: TestDatabase;
  let client: pg.Client;
  let statements: readonly CapturedStatement[];

  beforeAll(async () => {
    database = await emptyDatabase("postgres");
    const store = await openStore("postgres", database.url, { notify: false });
    await store.migrate();
    const captured = await captureStatements("postgres", () => useSchedules(store));
    await store.close();
    statements = captured.filter(hasScheduleTable);
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    for (const table of ["schedules", "occurrences", "schedule_apps"])
      await client.query(`ALTER TABLE pawl_${table} SET (autovacuum_enabled = false)`);
    for (const setting of sessionSettings) await client.query(`SET ${setting}`);
  }, 300_000);

  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  test("all of them are captured", () => {
    const texts = statements.map(({ sql }) => sql.replaceAll(/\s+/g, " "));
    for (const part of [
      "ended_schedules AS MATERIALIZED",
      "AS next_schedule_in",
      "INSERT INTO",
      "DELETE FROM",
      "FOR UPDATE",
      "o.pending IN",
      "GROUP BY o.schedule",
      "o.scheduled_for DESC",
      "next_at <=",
      "o.at <",
      "s.app =",
      "a.app =",
    ])
      expect(
        texts.some((text) => text.includes(part)),
        part,
      ).toBe(true);
  });

  test("no plan reads a whole table that was never analyzed", expectSearches);

  test("no plan reads a whole table that was empty when it was analyzed", async () => {
    await client.query("TRUNCATE pawl_schedules, pawl_occurrences, pawl_schedule_apps");
    await client.query("ANALYZE");
    await expectSearches();
    await fillTables(client);
    await expectSearches();
    await expectPlannedSearches();
  });

  test("no plan reads a whole table of many schedules that was analyzed", async () => {
    await client.query("ANALYZE");
    await expectSearches();
    await expectPlannedSearches();
  });

  /** As behind a pooler, where no settings are changed and each statement is planned with its values. */
  async function expectPlannedSearches(): Promise<void> {
    const pooledClient = new pg.Client({ connectionString: database.url });
    await pooledClient.connect();
    const badScans = new Set<string>();
    try {
      for (const { sql, values } of statements) {
        // There is no index by application: the list of its schedules is read seldom, and they are few.
        if (sql.includes("s.app =")) continue;
        const { rows } = await pooledClient.query(`EXPLAIN (FORMAT JSON) ${sql}`, [...values]);
        for (const node of findFullScans(rows[0]["QUERY PLAN"][0].Plan))
          if (/pawl_(schedules|occurrences)/.test(node)) badScans.add(`${node}: ${sql}`);
      }
    } finally {
      await pooledClient.end();
    }
    expect([...badScans]).toEqual([]);
  }

  async function expectSearches(): Promise<void> {
    const badScans = new Set<string>();
    for (const { sql, values } of statements) {
      await client.query("DEALLOCATE ALL");
      await client.query(`PREPARE planned AS ${sql}`);
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE planned(${values.map(literal).join(", ")})`);
      const { Plan: plan } = rows[0]["QUERY PLAN"][0];
      // Commits and heartbeats join the rows of a batch; the others only read.
      const scans = sql.startsWith("WITH") ? findBadScans(plan) : findUnlimitedScans(plan, false);
      for (const node of scans) badScans.add(`${node}: ${sql}`);
    }
    expect([...badScans]).toEqual([]);
  }
});

/** Sends every kind of statement. */
async function useSchedules(store: Store): Promise<void> {
  const { schedules } = store;
  const [kept, gone] = [scheduleRow({ app: "app", nextAt: 1 }), scheduleRow()];
  const occurrence = newOccurrence(kept, { pending: "waiting" });
  const app = { row: scheduleApp(), expectedRevision: null };
  await schedules.apply({
    changes: [creation(kept, { occurrences: [occurrence], starts: [runOf(kept.name)] }), creation(gone)],
    app,
  });
  await schedules.apply({ changes: [update(kept), deletion(gone)], app: { ...app, expectedRevision: 1 } });
  const { name } = kept;
  for (const names of [[name], [name, gone.name, "other"]]) {
    await schedules.byName(names);
    await schedules.pending({ names, kinds: ["open", "waiting"], limit: 10 });
    await schedules.pendingCounts(names);
  }
  await schedules.due({ setKeys: [kept.setKey, ""], limit: 10 });
  await schedules.nextAt([kept.setKey, ""]);
  await schedules.list({ after: null, limit: 10 });
  await schedules.list({ after: name, limit: 10, app: "app" });
  await schedules.occurrences({ schedule: name, before: null, limit: 10 });
  await schedules.occurrences({ schedule: name, before: occurrence, limit: 10 });
  await schedules.occurrencesById([occurrence.id]);
  await schedules.app(app.row.app);
  await schedules.apply({
    changes: [{ ...update(kept), expectedRevision: 2, occurrences: [{ ...occurrence, pending: null, at: 1 }] }],
  });
  await schedules.deleteOccurrences({ before: 2, limit: 10 });
  const fence = await store.registerWorker(workerInfo());
  await store.heartbeat(fence, undefined, { app: "app", setKey: kept.setKey });
  const owned = newRuns(3, { due: { kind: "owned" } });
  const free = newRuns(2);
  await store.commit(batch(fence, [], owned));
  await store.commit(batch(null, [], free));
  const [first, ...others] = owned.map(({ id }) => endOf(id, name));
  if (first === undefined) return;
  await store.commit(batch(fence, [first]));
  await store.commit(batch(fence, others));
  await store.commit(
    batch(
      null,
      free.map(({ id }) => endOf(id, name)),
    ),
  );
}

/** Does not change the statistics. */
async function fillTables(client: pg.Client): Promise<void> {
  await client.query(`INSERT INTO pawl_schedules (name, set_key, hash, incarnation, revision, status, next_at, workflow, definition, state, created_at)
    SELECT 's' || n, 'k' || n % 3, 'h', 'i', 1, 'active', n, 'w', '{}', '{}', n FROM generate_series(1, 5000) n`);
  await client.query(`INSERT INTO pawl_schedule_apps (app, set_key, revision, sets)
    SELECT 'a' || n, 'k', 1, '[]' FROM generate_series(1, 2000) n`);
  await client.query(`INSERT INTO pawl_occurrences (id, schedule, incarnation, scheduled_for, scheduled_until, occurrence_count, outcome, pending, at, detail)
    SELECT gen_random_uuid(), 's' || n % 100, 'i', n, n, 1, 'ran', CASE WHEN n % 50 = 0 THEN 'open' END, n, '{}' FROM generate_series(1, 50000) n`);
}
