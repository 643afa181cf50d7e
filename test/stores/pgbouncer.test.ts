/**
 * PostgreSQL behind PgBouncer in transaction mode, where each transaction may get a different server session. All
 * suites pass through it with `npm test -- --pgbouncer`; this file has the conformance suite of the store, and cases
 * that only a pooler causes.
 */
import { connect, type Logger, type Pawl, workflow } from "pawl";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type OwnServer, ownPgbouncer } from "../../scripts/servers.mjs";
import type { Store, StoreOptions } from "../../src/store/contract/store.js";
import { openPostgres } from "../../src/store/postgres/index.js";
import { batch, newRun, routesOf, workerInfo } from "../../src/testing/store-suite/builders.js";
import { CuttingProxy } from "../support/cutting-proxy.js";
import { emptyDatabase, isLeftOut, storeUrls, type TestDatabase } from "../support/databases.js";
import { Gate, until } from "../support/waiting.js";
import { testConformance } from "./conformance.js";

const isOut = isLeftOut("postgres") || isLeftOut("pgbouncer");
/** The URL of the server itself. */
const server = storeUrls().postgres;
let pooler: OwnServer;

beforeAll(async () => {
  if (isOut) return;
  // The pool is small, so that the statements of one connection reach several sessions.
  pooler = await ownPgbouncer(server, { poolSize: 6 });
  vi.stubEnv("PAWL_TEST_PGBOUNCER", server);
  vi.stubEnv("PAWL_TEST_POSTGRES_URL", pooler.url);
}, 300_000);

afterAll(async () => {
  await pooler?.remove();
});

describe.skipIf(isOut)("through PgBouncer", () => {
  testConformance("postgres", { notifiesAcrossInstances: true, direct: true });
});

describe.skipIf(isOut)("behind PgBouncer", () => {
  let database: TestDatabase;
  const opened: (Store | Pawl)[] = [];

  /** The URL of the test's database without a parameter that announces the pooler. */
  const plainUrl = (through: { readonly url: string } = pooler, parameters = "") => {
    const url = new URL(through.url);
    url.pathname = new URL(database.url).pathname;
    url.search = parameters;
    return url.href;
  };
  const warnings: string[] = [];
  const open = async (url: string, options: StoreOptions = {}) => {
    const store = await openPostgres(url, { onWarning: (what) => warnings.push(what), ...options });
    opened.push(store);
    await store.migrate();
    return store;
  };
  /** A connection to the server itself. */
  const direct = async () => {
    const client = new pg.Client({ connectionString: database.direct.listenUrl });
    client.on("error", () => {});
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  const names = (spy: { readonly mock: { readonly calls: unknown[][] } }) =>
    spy.mock.calls.map(([query]) => (query as { readonly name?: string }).name).filter((name) => name !== undefined);

  beforeAll(async () => {
    database = await emptyDatabase("postgres");
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    warnings.length = 0;
    vi.restoreAllMocks();
  });
  afterAll(() => database.drop());

  test("the pooler is detected before anything is set or prepared in a shared session, and reported once", async () => {
    const sent = vi.spyOn(pg.Client.prototype, "query");
    const store = await open(plainUrl());
    const worker = await store.registerWorker(workerInfo());
    await Promise.all(Array.from({ length: 20 }, () => store.commit(batch(worker, [], [newRun()]))));
    expect(warnings).toEqual([
      expect.stringMatching(/^the connection goes through a pooler .*polling.*listenUrl.*pooled: true/),
    ]);
    expect(names(sent)).toEqual([]);
    // Check every session that PgBouncer has, at the same time.
    const clients = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const client = new pg.Client({ connectionString: plainUrl() });
        await client.connect();
        await client.query("BEGIN");
        return client;
      }),
    );
    const question = `SELECT pg_backend_pid() AS pid, current_setting('enable_seqscan') AS scans,
      current_setting('plan_cache_mode') AS plans, (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`;
    const rows = await Promise.all(clients.map(async (client) => (await client.query(question)).rows[0]));
    await Promise.all(clients.map((client) => client.end()));
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(6);
    for (const row of rows) expect(row).toMatchObject({ scans: "on", plans: "auto", prepared: 0 });
  });

  test("a pooler that is announced in an option or in the URL is not reported", async () => {
    await open(plainUrl(), { pooled: true });
    await open(plainUrl(pooler, "pgbouncer=true"));
    expect(warnings).toEqual([]);
  });

  test("a pooler in session mode is used like the server itself", async () => {
    const faithful = await ownPgbouncer(server, { poolMode: "session" });
    onTestFinished(() => faithful.remove());
    const sent = vi.spyOn(pg.Client.prototype, "query");
    const store = await open(plainUrl(faithful));
    await store.commit(batch(null, [], [newRun()]));
    expect(warnings).toEqual([]);
    expect(store.hasCrossProcessHints).toBe(true);
    expect(names(sent)).not.toEqual([]);
    await opened.pop()?.close();
  });

  test("the server itself is not mistaken for a pooler, and no statement is lost when a pooler is detected late", async () => {
    const { query } = pg.Client.prototype as unknown as { query: (...args: unknown[]) => Promise<unknown> };
    let spoiled = 0;
    const sent = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args) {
      const { name } = args[0] as { readonly name?: string };
      // This is what a pooler causes: another client has prepared a statement of this name in the session.
      if (name?.startsWith("pawl_client_") && spoiled++ === 0) void query.call(this, `PREPARE ${name} AS SELECT 1`);
      return query.apply(this, args) as never;
    });
    const store = await open(database.direct.listenUrl as string);
    expect(store.hasCrossProcessHints).toBe(true);
    expect(warnings).toEqual([]);
    const run = newRun();
    expect(await store.commit(batch(null, [], [run]))).toMatchObject({ kind: "committed" });
    expect(await store.run(run.id)).toMatchObject({ id: run.id });
    expect(warnings).toEqual([expect.stringMatching(/goes through a pooler \(prepared statement .* already exists\)/)]);
    expect(store.hasCrossProcessHints).toBe(false);
    sent.mockClear();
    await store.commit(batch(null, [], [newRun()]));
    expect(names(sent)).toEqual([]);
  });

  test("URL parameters that PgBouncer refuses are not sent, unless they choose the schema", async () => {
    await open(plainUrl(pooler, "statement_timeout=5000&options=-c%20work_mem%3D5MB"));
    expect(warnings).toEqual([
      expect.stringContaining("the connection goes through a pooler (PostgreSQL: unsupported startup parameter"),
      "the pooler does not accept options, statement_timeout in the URL, so Pawl leaves it out: set it for the role instead.",
    ]);
    const elsewhere = plainUrl(pooler, "options=-c%20search_path%3Dapp");
    const refused = '"search_path=app" in the URL cannot be sent through a pooler: use connect(url, { schema: "app" })';
    await expect(openPostgres(elsewhere, { pooled: true })).rejects.toThrow(refused);
    await expect(openPostgres(elsewhere)).rejects.toThrow(refused);
    await open(elsewhere, { pooled: true, schema: "app" });
  });

  test("a database whose isolation level cannot be changed through the pooler is reported", async () => {
    const name = new URL(database.url).pathname.slice(1);
    const admin = await direct();
    await admin.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`);
    const fresh = await ownPgbouncer(server);
    onTestFinished(() => fresh.remove());
    await open(plainUrl(fresh), { pooled: true });
    await opened.pop()?.close();
    await admin.query(`ALTER DATABASE ${name} RESET default_transaction_isolation`);
    expect(warnings).toEqual([expect.stringContaining("the default isolation level is repeatable read")]);
  });

  test("a worker is woken through listenUrl, and without it finds its runs by polling", async () => {
    const quick = workflow("quick", (ctx) => ctx.step("one", () => 1));
    const [deaf, hearing] = [{}, database.direct];
    for (const wakeUps of [deaf, hearing]) {
      const here = await connect(database.url, wakeUps);
      const there = await connect(database.url, wakeUps);
      opened.push(here, there);
      // Without wake-ups there is a poll every second at the latest; with them there is none.
      const poll = wakeUps === deaf ? 1_000 : Number.POSITIVE_INFINITY;
      const worker = await there.worker({ workflows: [quick], poll }).start();
      expect(await (await here.start(quick)).result()).toBe(1);
      await worker.stop();
    }
    const admin = await direct();
    const { rows } = await admin.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    expect(rows[0].n, "only those that were told where").toBe(2);
  });

  test("runs survive kills of PgBouncer and of its sessions, and each transaction is committed once", async () => {
    let admin = await direct();
    await admin.query("CREATE TABLE effects (run int)");
    const gate = new Gate();
    let waiting = 0;
    const paying = workflow("paying", async (ctx, n: number) => {
      await ctx.step("wait", async () => {
        waiting += 1;
        await gate.opened;
      });
      const pay = async (tx: pg.Client) => void (await tx.query(`INSERT INTO effects VALUES (${n})`));
      for (const part of ["a", "b", "c"]) await ctx.transaction(part, pay, { retry: { attempts: 10, initial: 20 } });
      return n;
    });
    const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const pawl = await connect(database.url, { logger: silent });
    opened.push(pawl);
    await pawl.worker({ workflows: [paying], concurrency: 40 }).start();
    const numbers = Array.from({ length: 40 }, (_, n) => n);
    const runs = await pawl.startMany(paying, numbers);
    await until(() => waiting === 40);
    const effects = async () => (await admin.query("SELECT run FROM effects")).rows.length;
    gate.open();
    await until(async () => (await effects()) >= 10);
    await pooler.kill9();
    await pooler.start();
    await until(async () => (await effects()) >= 50);
    await database.cut?.();
    admin = await direct();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(numbers);
    const { rows } = await admin.query("SELECT run, count(*)::int AS n FROM effects GROUP BY run HAVING count(*) <> 3");
    expect(rows).toEqual([]);
    expect(await effects()).toBe(120);
    expect((await pawl.verify()).differences).toEqual([]);
  }, 300_000);

  test("a claim that reaches the server after its client gave up claims nothing", async () => {
    const proxy = await CuttingProxy.open(database.url);
    onTestFinished(() => proxy.close());
    const store = await open(proxy.url);
    const worker = await store.registerWorker(workerInfo({ leaseMs: 3_000 }));
    const run = newRun();
    await store.commit(batch(null, [], [run]));
    proxy.cut({ marks: ["SKIP LOCKED"], lose: "time" });
    const claim = store.claim({ fence: worker, routes: routesOf(run), limit: 1, limitPerRoute: 1 });
    await expect(claim).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
    const before = await statements();
    proxy.deliverLate();
    await until(async () => (await statements()) > before);
    expect(await store.tasks([run.id])).toMatchObject([{ state: "ready" }]);
    expect(await store.claim({ fence: worker, routes: routesOf(run), limit: 1, limitPerRoute: 1 })).toMatchObject({
      tasks: [{ run: { id: run.id } }],
    });

    /** How many transactions PgBouncer has forwarded to completion for this database. */
    async function statements(): Promise<number> {
      const url = new URL(pooler.url);
      url.pathname = "/pgbouncer";
      const client = new pg.Client({ connectionString: url.href });
      await client.connect();
      const { rows } = await client.query("SHOW STATS");
      await client.end();
      const name = new URL(database.url).pathname.slice(1);
      return Number(rows.find((row) => row.database === name)?.total_query_count);
    }
  }, 300_000);
});
