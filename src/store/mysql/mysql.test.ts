/** Tests beyond the store suite: locks, packets, lost connections, and transactions of users. */
import { randomUUID } from "node:crypto";
import { createConnection as createCallbackConnection } from "mysql2";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
import { untilInInnodb } from "../../../test/support/waiting.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import type { Batch, Fence, NewRun, Store, Transition } from "../contract/store.js";
import { openMysql } from "./index.js";

const newRun = (overrides: Partial<NewRun> = {}): NewRun => ({
  id: randomUUID(),
  workflow: "mail",
  version: "",
  queue: "mail",
  priority: 0,
  input: "{}",
  heroType: null,
  heroId: null,
  heroKey: null,
  tags: [],
  startKey: null,
  parentId: null,
  parentNode: null,
  parentIndex: null,
  parentAttempt: null,
  due: { kind: "now" },
  ...overrides,
});

const startBatch = (...starts: NewRun[]): Batch => ({ fence: null, transitions: [], starts });

const appendBatch = (fence: Fence, runs: readonly NewRun[], afterSeq = 0, data = "1"): Batch => {
  const rest = {
    next: { kind: "keep" },
    drainedInboxIds: [],
    newChildren: [],
    messages: [],
    releasedChildIds: [],
    cursors: [],
  } as const;
  const events = [{ type: "step.completed", node: "a", attempt: 1, outcome: "success", data }];
  const transitions = runs.map(({ id }): Transition => ({ runId: id, afterSeq, events, ...rest }));
  return { fence, transitions, starts: [] };
};

const pendingAfter = (ms: number) => new Promise<"pending">((resolve) => setTimeout(() => resolve("pending"), ms));

describe.skipIf(isLeftOut("mysql"))("MySQL", () => {
  let database: TestDatabase;
  let store: Store;
  let other: Connection;

  beforeAll(async () => {
    database = await emptyDatabase("mysql");
    store = await openMysql(database.url);
    await store.migrate();
    other = await createConnection({ uri: database.url });
  });

  afterAll(async () => {
    await other.end();
    await store.close();
    await database.drop();
  });

  const registerWorker = (leaseMs = 60_000) =>
    store.registerWorker({ id: randomUUID(), name: "w", host: "h", pid: 1, port: null, routes: [], leaseMs });

  const startOwnedRuns = async (fence: Fence, count: number) => {
    const runs = Array.from({ length: count }, () => newRun({ due: { kind: "owned" } }));
    await store.commit({ fence, transitions: [], starts: runs });
    return runs;
  };

  // One row is inserted by the statement that checks everything itself; 40 rows are read first and inserted with the
  // fence.
  describe.each([1, 40])("an append of %i rows", (count) => {
    test("waits for a reaper that has locked the worker's row, and is fenced when it commits", async () => {
      const fence = await registerWorker();
      const runs = await startOwnedRuns(fence, count);
      await other.query("START TRANSACTION");
      await other.query("UPDATE pawl_workers SET live = 0 WHERE id = ?", [fence.workerId]);
      const committing = store.commit(appendBatch(fence, runs));
      expect(await Promise.race([committing, pendingAfter(300)])).toBe("pending");
      await other.query("COMMIT");
      expect(await committing).toEqual({ kind: "fenced" });
      expect((await store.logs(runs.map(({ id }) => id))).size).toBe(0);
    });

    test("is committed when the reaper rolls back", async () => {
      const fence = await registerWorker();
      const runs = await startOwnedRuns(fence, count);
      await other.query("START TRANSACTION");
      await other.query("UPDATE pawl_workers SET live = 0 WHERE id = ?", [fence.workerId]);
      const committing = store.commit(appendBatch(fence, runs));
      await pendingAfter(100);
      await other.query("ROLLBACK");
      expect(await committing).toMatchObject({ kind: "committed" });
    });

    test("makes a reaper wait until the append is committed", async () => {
      const fence = await registerWorker();
      const runs = await startOwnedRuns(fence, count);
      // An uncommitted event of the last run from another connection blocks the append after it has locked its fence.
      const lastId = runs
        .map(({ id }) => id)
        .sort()
        .at(-1);
      await other.query("START TRANSACTION");
      await other.query("INSERT INTO pawl_events VALUES (?, 1, 1, 't', NULL, NULL, NULL, NULL, 1)", [lastId]);
      const committing = store.commit(appendBatch(fence, runs));
      await pendingAfter(200);
      const reaper = await createConnection({ uri: database.url });
      const reaping = reaper.query("UPDATE pawl_workers SET live = 0 WHERE id = ?", [fence.workerId]);
      expect(await Promise.race([reaping, pendingAfter(300)])).toBe("pending");
      await other.query("ROLLBACK");
      expect(await committing).toMatchObject({ kind: "committed" });
      await reaping;
      await reaper.end();
      expect((await store.logs(runs.map(({ id }) => id))).size).toBe(count);
    });

    test("names the run whose log has another end, and writes nothing", async () => {
      const fence = await registerWorker();
      const runs = await startOwnedRuns(fence, count);
      const last = runs.at(-1) as NewRun;
      await store.commit(appendBatch(fence, [last]));
      expect(await store.commit(appendBatch(fence, runs))).toEqual({ kind: "conflict", runId: last.id });
      expect(await store.commit(appendBatch(fence, [last], 7))).toEqual({ kind: "conflict", runId: last.id });
      expect((await store.logs(runs.map(({ id }) => id))).size).toBe(1);
    });
  });

  test.each([1, 3, 40])("an append to %i runs names the one that has a message", async (count) => {
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, count);
    expect(await store.commit(appendBatch(fence, runs))).toMatchObject({ kind: "committed", ownedWithMessages: [] });
    await store.send([{ to: runs.at(-1)?.id ?? "", kind: "k", data: "{}" }]);
    const result = await store.commit(appendBatch(fence, runs, 1));
    const [event] = await store.log(runs[0]?.id ?? "", { after: 1, limit: 1 });
    expect(result).toMatchObject({ kind: "committed", at: event?.at, ownedWithMessages: [runs.at(-1)?.id] });
  });

  test("a user's trigger on pawl_events does not change a commit's timestamp or its runs with messages", async () => {
    const fence = await registerWorker();
    const run = newRun({ due: { kind: "owned" } });
    await store.commit({ fence, transitions: [], starts: [run] });
    await other.query("CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(36))");
    await other.query(
      "CREATE TRIGGER audited AFTER INSERT ON pawl_events FOR EACH ROW INSERT INTO audit (what) VALUES (NEW.run_id)",
    );
    try {
      const result = await store.commit(appendBatch(fence, [run]));
      const [event] = await store.log(run.id, { after: 0, limit: 1 });
      expect(result).toMatchObject({ kind: "committed", at: event?.at, ownedWithMessages: [] });
      expect(event?.at).toBeGreaterThan(0);
      await store.send([{ to: run.id, kind: "k", data: "{}" }]);
      expect(await store.commit(appendBatch(fence, [run], 1))).toMatchObject({ ownedWithMessages: [run.id] });
    } finally {
      await other.query("DROP TRIGGER audited");
      await other.query("DROP TABLE audit");
    }
  });

  test("an event that another connection commits during the insert is a conflict", async () => {
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, 40);
    const [first] = runs.map(({ id }) => id).sort();
    await other.query("START TRANSACTION");
    await other.query("INSERT INTO pawl_events VALUES (?, 1, 1, 't', NULL, NULL, NULL, NULL, 1)", [first]);
    const committing = store.commit(appendBatch(fence, runs));
    await pendingAfter(200);
    await other.query("COMMIT");
    expect(await committing).toEqual({ kind: "conflict", runId: first });
  });

  test("claims and starts do not wait for uncommitted starts and claims", async () => {
    const fence = await registerWorker();
    const workflow = randomUUID();
    const routes = [{ workflow, version: "" }];
    const runs = [newRun({ workflow }), newRun({ workflow }), newRun({ workflow, due: { kind: "at", ms: 1 } })];
    await store.commit(startBatch(...runs));
    await other.query("START TRANSACTION");
    await store.startInTransaction(other, [newRun({ workflow }), newRun({ workflow, priority: 5 })]);
    await other.query("SELECT * FROM pawl_tasks WHERE run_id = ? FOR UPDATE", [runs[0]?.id]);
    const claimed = await store.claim({ fence, routes, limit: 10, limitPerRoute: 10 });
    expect(claimed).toMatchObject({ tasks: [{}, {}] });
    await store.commit(startBatch(newRun({ workflow })));
    await other.query("COMMIT");
    expect(await store.claim({ fence, routes, limit: 10, limitPerRoute: 10 })).toMatchObject({
      tasks: [{ run: { priority: 5 } }, {}, {}, {}],
    });
  });

  test.each(["startKey", "heroKey"])(
    "a start that waits for a %s of an open transaction keeps no start without one waiting",
    async (column) => {
      const key = { workflow: "keyed", [column]: `in use ${column}` };
      const waitingOf = `SELECT count(*) AS n FROM information_schema.innodb_trx t
        JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
        WHERE p.db = DATABASE() AND t.trx_state = 'LOCK WAIT'`;
      await other.query("START TRANSACTION");
      await store.startInTransaction(other, [newRun(key)]);
      const waiting = store.commit(startBatch(newRun(key)));
      const impatient = await createConnection({ uri: database.url });
      const isWaiting = async () => Number(((await impatient.query(waitingOf))[0] as { n: number }[])[0]?.n) > 0;
      await untilInInnodb(isWaiting);
      await impatient.query("SET SESSION innodb_lock_wait_timeout = 1");
      await impatient.query(
        `INSERT INTO pawl_runs (id, workflow, version, queue, priority, status, input, created_at)
        VALUES (?, 'keyed', '', 'keyed', 0, 'pending', '1', 1)`,
        [randomUUID()],
      );
      expect(await isWaiting()).toBe(true);
      await impatient.end();
      await other.query("ROLLBACK");
      expect(await waiting).toMatchObject({ kind: "committed", refused: [] });
    },
  );

  test("a claim that found all due tasks locked returns a time for the next claim", async () => {
    const fence = await registerWorker();
    const workflow = randomUUID();
    const run = newRun({ workflow });
    await store.commit(startBatch(run));
    await other.query("START TRANSACTION");
    await other.query("SELECT * FROM pawl_tasks WHERE run_id = ? FOR UPDATE", [run.id]);
    const claimed = await store.claim({ fence, routes: [{ workflow, version: "" }], limit: 1, limitPerRoute: 1 });
    await other.query("ROLLBACK");
    expect(claimed).toMatchObject({ tasks: [], nextDueAt: expect.any(Number) });
  });

  test("due timers that are not claimed become ready", async () => {
    const fence = await registerWorker();
    const workflow = randomUUID();
    const soonDue = (await store.now()) + 50;
    const timers = [1, 2].map(() => newRun({ workflow, due: { kind: "at", ms: soonDue } }));
    const urgent = [1, 2].map(() => newRun({ workflow, priority: 9 }));
    await store.commit(startBatch(...timers, ...urgent));
    await pendingAfter(80);
    const claimed = await store.claim({ fence, routes: [{ workflow, version: "" }], limit: 2, limitPerRoute: 2 });
    expect(claimed).toMatchObject({ tasks: [{ run: { priority: 9 } }, { run: { priority: 9 } }] });
    const left = await store.tasks(timers.map(({ id }) => id));
    expect(left.map(({ state, dueAt }) => [state, dueAt])).toEqual(timers.map(() => ["ready", soonDue]));
  });

  test("a worker with a valid fence cannot append to a run that it does not own", async () => {
    const [fence, ownerFence] = [await registerWorker(), await registerWorker()];
    const [run] = await startOwnedRuns(ownerFence, 1);
    expect(await store.commit(appendBatch(fence, [run as NewRun]))).toEqual({ kind: "conflict", runId: run?.id });
    expect(await store.log(run?.id ?? "", { after: 0, limit: 1 })).toEqual([]);
  });

  test("a worker whose commit is in progress is not reaped, others with an expired lease are", async () => {
    const live = await registerWorker();
    const committing = await registerWorker(1);
    const expired = await registerWorker(1);
    await pendingAfter(20);
    await other.query("START TRANSACTION");
    await other.query("SELECT * FROM pawl_workers WHERE id = ? LOCK IN SHARE MODE", [committing.workerId]);
    expect((await store.heartbeat(live)).reapedWorkerIds).toEqual([expired.workerId]);
    await other.query("ROLLBACK");
    expect((await store.heartbeat(live)).reapedWorkerIds).toEqual([committing.workerId]);
  });

  test("a batch larger than a packet is split, a value larger than a packet is refused before it is sent", async () => {
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, 40);
    const mebibyte = "💥".repeat(262_144);
    expect(await store.commit(appendBatch(fence, runs, 0, mebibyte))).toMatchObject({ kind: "committed" });
    const log = await store.log(runs[7]?.id ?? "", { after: 0, limit: 1 });
    expect(log[0]?.data === mebibyte).toBe(true);
    const tooLarge = store.commit(appendBatch(fence, runs.slice(0, 1), 1, "x".repeat(17 * 1024 * 1024)));
    await expect(tooLarge).rejects.toMatchObject({ code: "STORE_ERROR", transient: false });
    await expect(tooLarge).rejects.toThrow(/max_allowed_packet/);
    expect(await store.commit(appendBatch(fence, runs.slice(0, 1), 1))).toMatchObject({ kind: "committed" });
  });

  test("names differ by case and trailing spaces, and quotes, backslashes and emoji are stored unchanged", async () => {
    const names = ["Name", "name", "name ", "name\u0000", "näme", "na\\'\"`me;--", "💥", "?"];
    await store.registerWorkflows(
      names.map((name) => ({ name, queue: null, version: null, signature: name, graph: null })),
    );
    for (const name of names) expect(await store.workflow(name)).toMatchObject({ name, signature: name });
    const id = randomUUID();
    await store.commit(startBatch(newRun({ id, startKey: "k" })));
    for (const almost of [`${id} `, id.toUpperCase(), `${id}é`]) expect(await store.run(almost)).toBeNull();
  });

  test.each([
    ["promise connection", async () => createConnection({ uri: database.url })],
    ["callback connection", async () => createCallbackConnection({ uri: database.url })],
  ])(
    "a start in a user's %s under REPEATABLE READ is refused by a key that was committed after its snapshot",
    async (_, open) => {
      const tx = (await open()) as unknown as { query(sql: string, done?: unknown): unknown; end(): unknown };
      const query = (sql: string) =>
        tx.query.length === 0 || "promise" in tx
          ? new Promise((resolve) => tx.query(sql, resolve))
          : (tx.query(sql) as Promise<unknown>);
      await query("START TRANSACTION");
      await query("SELECT * FROM pawl_runs LIMIT 1");
      const first = newRun({ startKey: randomUUID() });
      await store.commit(startBatch(first));
      const second = newRun({ startKey: first.startKey });
      const third = newRun();
      const { refused } = await store.startInTransaction(tx, [second, third]);
      expect(refused).toMatchObject([{ runId: second.id, reason: "startKey", existing: { id: first.id } }]);
      await query("COMMIT");
      await tx.end();
      expect((await store.runsById([second.id, third.id])).map(({ id }) => id)).toEqual([third.id]);
    },
  );

  test("a start accepts any object with a query method, but not a pool", async () => {
    const asRows = { query: async (sql: string, params: unknown[]) => (await other.query(sql, params))[0] };
    const run = newRun();
    await other.query("START TRANSACTION");
    await store.startInTransaction(asRows, [run]);
    await other.query("COMMIT");
    expect(await store.run(run.id)).toMatchObject({ status: "pending" });
    await expect(store.startInTransaction({ query() {}, getConnection() {} }, [run])).rejects.toThrow(/pool/);
    await expect(store.startInTransaction(null, [run])).rejects.toThrow(InvalidInputError);
  });

  test("settings of user code end with its transaction, and its connection refuses multiple statements", async () => {
    for (let i = 0; i < 3; i += 1) {
      const { handle, rollback } = await store.beginTransaction();
      const connection = handle as Connection;
      const [rows] = await connection.query("SELECT @setting AS setting, @@sql_mode AS mode, @@wait_timeout AS idle");
      const row = (rows as object[])[0];
      expect(row).toMatchObject({ setting: null, mode: expect.stringContaining("STRICT_ALL_TABLES"), idle: 60 });
      await connection.query("SET @setting = 1, sql_mode = ''");
      await expect(connection.query("SELECT 1; SELECT 2")).rejects.toThrow(/syntax/);
      await rollback();
      await pendingAfter(20);
    }
  });

  test("a transaction of user code sees commits of others (READ COMMITTED)", async () => {
    const { handle, rollback } = await store.beginTransaction();
    const versions = async (id: string) =>
      (await (handle as Connection).query("SELECT version FROM pawl_runs WHERE id = ?", [id]))[0] as object[];
    const run = newRun();
    expect(await versions(run.id)).toEqual([]);
    await store.commit(startBatch(run));
    expect(await versions(run.id)).toHaveLength(1);
    await rollback();
  });

  test("in a transaction of user code, an event that another connection commits meanwhile is a conflict", async () => {
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, 2);
    await other.query("START TRANSACTION");
    await other.query("INSERT INTO pawl_events VALUES (?, 1, 1, 't', NULL, NULL, NULL, NULL, 1)", [runs[1]?.id]);
    const transaction = await store.beginTransaction();
    const committing = transaction.commit(appendBatch(fence, runs));
    await pendingAfter(200);
    await other.query("COMMIT");
    expect(await committing).toEqual({ kind: "conflict", runId: runs[1]?.id });
    expect((await store.logs([runs[0]?.id ?? ""])).size).toBe(0);
    await expect(transaction.commit(appendBatch(fence, runs))).rejects.toThrow(/has ended/);
  });

  test("close rolls back a transaction that user code has left open", async () => {
    const second = await openMysql(database.url);
    const { handle, commit } = await second.beginTransaction();
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, 1);
    await (handle as Connection).query("UPDATE pawl_runs SET status = 'x' WHERE id = ?", [runs[0]?.id]);
    await second.close();
    await expect(commit(appendBatch(fence, runs))).rejects.toMatchObject({ code: "STORE_ERROR" });
    expect(await store.run(runs[0]?.id ?? "")).toMatchObject({ status: "running" });
  });

  test("a claim with a route listed twice returns each task once, and limits may be infinite", async () => {
    const fence = await registerWorker();
    const workflow = randomUUID();
    await store.commit(startBatch(newRun({ workflow }), newRun({ workflow })));
    const route = { workflow, version: "" };
    const limits = { limit: Number.POSITIVE_INFINITY, limitPerRoute: Number.POSITIVE_INFINITY };
    expect(await store.claim({ fence, routes: [route, { ...route }], ...limits })).toMatchObject({ tasks: [{}, {}] });
  });

  test("connections that the server has killed are replaced", async () => {
    const fence = await registerWorker();
    const runs = await startOwnedRuns(fence, 3);
    const selectSessions =
      "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    for (let round = 0; round < 3; round += 1) {
      const [rows] = (await other.query(selectSessions)) as unknown as [{ id: number }[]];
      for (const { id } of rows) await other.query(`KILL ${id}`).catch(() => {});
      expect(await store.run(runs[0]?.id ?? "")).toMatchObject({ status: "running" });
      expect(await store.commit(appendBatch(fence, runs.slice(round, round + 1)))).toMatchObject({ kind: "committed" });
    }
  });

  test("the error for a wrong URL says what is wrong, and mariadb: is accepted", async () => {
    await expect(openMysql("postgres://localhost/x")).rejects.toThrow(/mysql:\/\//);
    await expect(openMysql("mysql://localhost")).rejects.toThrow(/database/);
    await expect(openMysql("mysql://root@127.0.0.1:1/x")).rejects.toMatchObject({ transient: true });
    const missing = openMysql(database.url.replace(/[^/]+$/, "pawl_no_such_database"));
    await expect(missing).rejects.toMatchObject({ code: "STORE_ERROR", transient: false });
    const mariadb = await openMysql(database.url.replace("mysql:", "mariadb:"));
    expect(mariadb.description).toMatch(/^mysql 127\.0\.0\.1:\d+\/pawl_test/);
    await mariadb.close();
    await expect(mariadb.now()).rejects.toThrow(/closed/);
  });
});
