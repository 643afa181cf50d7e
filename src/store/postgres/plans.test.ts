/**
 * A prepared statement is planned once, at a time when the tables may be empty or full, analyzed or not. No plan may
 * ever read a whole table: a plan that begins with all tasks, because there were none, later reads a hundred thousand
 * sleeping ones for every run that ends.
 */

import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { captureQuestions } from "../../../test/scale/measure.js";
import { seedRuns } from "../../../test/scale/seed.js";
import type { CapturedStatement } from "../../../test/scale/statement-capture.js";
import { emptyDatabase, isLeftOut, openStore, type TestDatabase } from "../../../test/support/databases.js";
import {
  findBadScans,
  findFullScans,
  findUnlimitedScans,
  literal,
  scansOf,
} from "../../../test/support/query-plans.js";
import { connect, Workflow, workflow } from "../../index.js";
import { sessionSettings } from "./connection/session-settings.js";

type SentStatement = { readonly name: string; readonly text: string; readonly values: readonly unknown[] };

const child = workflow("child", (ctx, n: number) => ctx.step("part", () => n));
const nap = workflow("nap", async (ctx) => {
  await ctx.sleep("nap", 5);
  await ctx.step("after", () => 1);
});
/** Uses every feature that needs a kind of statement of its own. */
const busy = workflow("busy", async (ctx) => {
  await ctx.step("one", (step) => step.progress(1, 2));
  await ctx.sleep("nap", 5);
  await ctx.map(child, [1, 2, 3, 4], { concurrency: 2 });
  await ctx.run(child, 5);
  return ctx.waitForSignal("go");
});

describe.skipIf(isLeftOut("postgres"))("whatever the statistics say", () => {
  let database: TestDatabase;
  let client: pg.Client;
  const sentStatements = new Map<string, SentStatement>();

  beforeAll(async () => {
    database = await emptyDatabase("postgres");
    const { query } = pg.Client.prototype;
    vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      const [first] = args as [Partial<SentStatement> | undefined];
      if (first?.name?.startsWith("pawl_")) sentStatements.set(first.name, { values: [], ...first } as SentStatement);
      return (query as (...rest: unknown[]) => unknown).apply(this, args) as never;
    });
    await runWorkload(database.url);
    vi.restoreAllMocks();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    for (const setting of sessionSettings) await client.query(`SET ${setting}`);
  }, 300_000);

  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  test("the workload sent every kind of statement", () => {
    const sectionLetters = new Set(
      [...sentStatements.keys()].filter((name) => name.startsWith("pawl_worker_")).join(""),
    );
    for (const letter of "kzeodpflmrnbw") expect([...sectionLetters]).toContain(letter);
    expect([...sentStatements.keys()]).toEqual(
      expect.arrayContaining([
        ...["pawl_claim", "pawl_client_a", "pawl_client_n", "pawl_worker_one_cursor"],
        ...["pawl_worker_one_event", "pawl_worker_own_event"],
      ]),
    );
  });

  test("no plan reads a whole table that was never analyzed", () => expectSearches());

  test("no plan reads a whole table that is full of ended runs, with no task", async () => {
    await client.query("ANALYZE");
    await expectSearches();
  });

  test("no plan reads a whole table that was empty when it was analyzed", async () => {
    await client.query("TRUNCATE pawl_runs, pawl_tasks, pawl_events, pawl_inbox, pawl_cursors");
    await client.query("ANALYZE");
    await expectSearches();
  });

  describe("behind a pooler, where no settings are changed and each statement is planned with its values", () => {
    let pooledClient: pg.Client;

    beforeAll(async () => {
      pooledClient = new pg.Client({ connectionString: database.url });
      await pooledClient.connect();
      await fillTables(pooledClient);
    });
    afterAll(() => pooledClient.end());

    test("no plan reads a whole table that has grown since it was analyzed", () => expectPlannedSearches());

    test("no plan reads a whole table of sleeping runs that was analyzed", async () => {
      await pooledClient.query("ANALYZE");
      await expectPlannedSearches();
    });

    test("no plan reads a whole table whose statistics say that all tasks are ready", async () => {
      await pooledClient.query("UPDATE pawl_tasks SET state = 1");
      await pooledClient.query("ANALYZE pawl_tasks");
      await pooledClient.query("UPDATE pawl_tasks SET state = 0");
      await expectPlannedSearches();
    });

    async function expectPlannedSearches(): Promise<void> {
      const badScans: string[] = [];
      for (const { name, text, values } of sentStatements.values()) {
        const { rows } = await pooledClient.query(`EXPLAIN (FORMAT JSON) ${text}`, [...values]);
        for (const node of findFullScans(rows[0]["QUERY PLAN"][0].Plan)) badScans.push(`${name}: ${node}: ${text}`);
      }
      expect(badScans).toEqual([]);
    }
  });

  test("the view of step executions finds the events of the selected runs by index", async () => {
    const conditionsToPlan = ["run_id = $1::uuid", "workflow = $1", "hero_id = $1"];
    for (const where of conditionsToPlan) {
      await client.query("DEALLOCATE ALL");
      await client.query(`PREPARE planned AS SELECT * FROM pawl_step_executions WHERE ${where}`);
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE planned(NULL)`);
      const plan = rows[0]["QUERY PLAN"][0].Plan;
      const conditions = [...scansOf(plan, "pawl_events")].map((scan) => scan["Index Cond"] ?? "none");
      expect(conditions.length).toBeGreaterThan(0);
      for (const condition of conditions) expect(condition, where).toMatch(/^\(\(?run_id = /);
    }
  });

  async function expectSearches(): Promise<void> {
    const badScans: string[] = [];
    for (const { name, text, values } of sentStatements.values()) {
      await client.query("DEALLOCATE ALL");
      await client.query(`PREPARE planned AS ${text}`);
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE planned(${values.map(literal).join(", ")})`);
      for (const node of findBadScans(rows[0]["QUERY PLAN"][0].Plan)) badScans.push(`${name}: ${node}`);
    }
    expect(badScans).toEqual([]);
  }
});

/** The questions of people who look at many runs. Each reads an index, from a position or up to a limit, in its own order. */
describe.skipIf(isLeftOut("postgres"))("the questions about many runs, whatever the statistics say", () => {
  let [filled, empty]: readonly (TestDatabase | undefined)[] = [];
  let statements: readonly CapturedStatement[];

  beforeAll(async () => {
    [filled, empty] = [await emptyDatabase("postgres"), await emptyDatabase("postgres")];
    for (const { url } of [filled, empty]) {
      const store = await openStore("postgres", url);
      await store.migrate();
      await store.close();
    }
    const seeded = await seedRuns("postgres", filled.url, 6_600);
    statements = [...(await captureQuestions("postgres", filled.url, seeded)).values()].flat();
  }, 300_000);

  afterAll(async () => {
    await filled?.drop();
    await empty?.drop();
  });

  test("no plan reads a whole table that was analyzed", () => expectOrderedSearches(filled));

  test("no plan reads a whole table that was never analyzed", () => expectOrderedSearches(empty));

  test("no plan reads a whole table that was empty when it was analyzed", () =>
    expectOrderedSearches(empty, (client) => client.query("ANALYZE")));

  async function expectOrderedSearches(
    database: TestDatabase | undefined,
    prepare: (client: pg.Client) => Promise<unknown> = async () => {},
  ): Promise<void> {
    const client = new pg.Client({ connectionString: database?.url });
    await client.connect();
    try {
      await prepare(client);
      for (const setting of sessionSettings) await client.query(`SET ${setting}`);
      expect(await findBadQuestions(client)).toEqual([]);
    } finally {
      await client.end();
    }
  }

  async function findBadQuestions(client: pg.Client): Promise<string[]> {
    const badScans = new Set<string>();
    for (const { sql, values } of statements) {
      await client.query("DEALLOCATE ALL");
      await client.query(`PREPARE planned AS ${sql}`);
      const execute = values.length === 0 ? "planned" : `planned(${values.map(literal).join(", ")})`;
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE ${execute}`);
      for (const node of findUnlimitedScans(rows[0]["QUERY PLAN"][0].Plan, false)) badScans.add(`${node}: ${sql}`);
    }
    expect(statements.length).toBeGreaterThan(200);
    return [...badScans];
  }
});

/**
 * Inserts many sleeping runs, each with a log, a message and a cursor. Statistics change only when a test runs ANALYZE.
 */
async function fillTables(client: pg.Client): Promise<void> {
  for (const table of ["runs", "tasks", "events", "inbox", "cursors", "schedules", "slots"])
    await client.query(`ALTER TABLE pawl_${table} SET (autovacuum_enabled = false)`);
  await client.query(`INSERT INTO pawl_schedules (name, set_key, hash, incarnation, revision, status, next_at, workflow, definition, state, created_at)
    SELECT 's' || n, 'k' || n, 'h', 'i', 1, 'active', n, 'busy', '{}', '{}', n FROM generate_series(1, 5000) n`);
  const ids = "(SELECT gen_random_uuid() AS id, n FROM generate_series(1, 20000) n)";
  await client.query(`WITH i AS MATERIALIZED ${ids},
    r AS (INSERT INTO pawl_runs (id, created_at, priority, workflow, version, queue, status, input)
      SELECT id, n, 0, 'busy', '', 'busy', 'waiting', '{}' FROM i),
    t AS (INSERT INTO pawl_tasks (run_id, due_at, priority, deliveries, pending_messages, state, fresh, workflow, version)
      SELECT id, 9e12, 0, 0, 0, 0, false, 'busy', '' FROM i),
    e AS (INSERT INTO pawl_events (run_id, at, seq, span, type) SELECT id, n, s, 1, 'x' FROM i, generate_series(1, 3) s),
    m AS (INSERT INTO pawl_inbox (run_id, at, kind, data) SELECT id, n, 'x', 'x' FROM i),
    s AS (INSERT INTO pawl_slots (run_id, at, lane) SELECT id, n, 'lane' || n FROM i)
    INSERT INTO pawl_cursors (run_id, at, node) SELECT id, n, 'x' FROM i`);
}

class Loop extends Workflow {
  static {
    this.resumableStep("loop", (_w, iter) => iter.over([1, 2, 3], () => {}));
  }
}

/** Executes runs that use everything, and the client's commands. */
async function runWorkload(url: string): Promise<void> {
  const pawl = await connect(url);
  const worker = await pawl.worker({ workflows: [busy, child, nap, Loop] }).start();
  const runs = [...(await pawl.startMany(busy, [undefined, undefined])), await pawl.start(busy, undefined)];
  for (const run of runs) await run.signal("go", 1);
  await Promise.all(runs.map((run) => run.result()));
  await Promise.all((await pawl.startMany(child, Array(50).fill(1))).map((run) => run.result()));
  await (await pawl.start(Loop)).result();
  // Alone, so that its events are committed singly; after it wakes up, its commit checks the end of the log.
  await (await pawl.start(nap)).result();
  await worker.stop();
  await pawl.startMany(child, [1, 2]);
  await pawl.startMany(child, [1, 2], { tags: ["tagged"] });
  const waiting = await pawl.start(busy, undefined, { idempotencyKey: "once" });
  await waiting.cancel();
  await pawl.close();
}
