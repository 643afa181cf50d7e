/** What only PostgreSQL has: locks that wait, schemas, plans, notifications. The rest is in the conformance suite. */

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/support/databases.js";
import { systemRuntime } from "../../runtime/system.js";
import {
  batch,
  event,
  finish,
  newMessage,
  newRun,
  newRuns,
  park,
  routesOf,
  transition,
  workerInfo,
} from "../../testing/store-suite/builders.js";
import type { Fence, Hint, Store, StoreOptions } from "../contract/store.js";
import { Claimer } from "./claim/claim.js";
import { ClaimBoundsTracker } from "./claim/claim-bounds.js";
import { createSqlClock } from "./clock.js";
import { openPostgres } from "./index.js";
import { tablesIn } from "./tables.js";

describe.skipIf(isLeftOut("postgres"))("the PostgreSQL store alone", () => {
  let database: TestDatabase;
  let admin: pg.Client;
  let store: Store;
  let worker: Fence;
  const openedStores: Store[] = [];

  const openStore = async (options: StoreOptions = {}) => {
    const another = await openPostgres(database.url, options);
    openedStores.push(another);
    await another.migrate();
    return another;
  };
  /** Holds a row's lock as a stranger's transaction would. */
  const holdLock = async (sql: string, values: unknown[]) => {
    await admin.query("BEGIN");
    await admin.query(sql, values);
  };
  const lockTask = (runId: string) => holdLock("SELECT 1 FROM pawl_tasks WHERE run_id = $1 FOR UPDATE", [runId]);
  const count = async (sql: string, ...values: unknown[]) =>
    Number((await admin.query(`SELECT count(*) AS n FROM ${sql}`, values)).rows[0].n);
  const waitUntil = async (what: string, holds: () => Promise<boolean> | boolean) => {
    const deadline = performance.now() + 8_000;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`It never came true that ${what}.`);
      await sleep(10);
    }
  };
  const waitingSessions = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  const startOwnedRun = async (overrides = {}) => {
    const run = newRun({ ...overrides, due: { kind: "owned" } });
    expect(await store.commit(batch(worker, [], [run]))).toMatchObject({ kind: "committed", refused: [] });
    return run;
  };

  beforeAll(async () => {
    database = await testDatabase("postgres");
    admin = new pg.Client({ connectionString: database.url });
    admin.on("error", () => {});
    await admin.connect();
    store = await openPostgres(database.url);
    await store.migrate();
    worker = await store.registerWorker(workerInfo());
  });
  afterEach(async () => {
    for (const other of openedStores.splice(0)) await other.close();
  });
  afterAll(async () => {
    await store.close();
    await admin.end();
    await database.drop();
  });

  test("a worker's commit to a run that is not its own conflicts, alone and among others", async () => {
    const stranger = await store.registerWorker(workerInfo());
    const [mine, theirs] = [await startOwnedRun(), newRun({ due: { kind: "owned" } })];
    await store.commit(batch(stranger, [], [theirs]));
    const keep = (run: { id: string }) => transition(run.id, { events: [event("e")] });
    for (const transitions of [[keep(theirs)], [keep(mine), keep(theirs)]]) {
      expect(await store.commit(batch(worker, transitions))).toEqual({ kind: "conflict", runId: theirs.id });
    }
    expect(await store.commit(batch({ ...worker, epoch: 99 }, [keep(mine)]))).toEqual({ kind: "fenced" });
    const logs = await store.logs([mine.id, theirs.id]);
    expect([logs.get(mine.id) ?? [], logs.get(theirs.id) ?? []]).toEqual([[], []]);
    expect(await store.commit(batch(worker, [keep(mine)]))).toMatchObject({
      kind: "committed",
      notParked: [],
      refused: [],
    });
    expect(await store.commit(batch(worker, [keep(mine)]))).toEqual({ kind: "conflict", runId: mine.id });
  });

  test("a client's commit that would leave a gap in the log, or begin inside a row of it, conflicts", async () => {
    const run = newRun({ due: { kind: "held" } });
    await store.commit(batch(null, [], [run]));
    const move = (afterSeq: number) =>
      store.commit(batch(null, [transition(run.id, { afterSeq, events: [event("a"), event("b")], next: park() })]));
    expect(await move(0)).toMatchObject({ kind: "committed" });
    for (const after of [0, 1, 3]) expect(await move(after)).toEqual({ kind: "conflict", runId: run.id });
    expect(await move(2)).toMatchObject({ kind: "committed" });
    expect((await store.log(run.id, { after: 0, limit: 10 })).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  });

  test("a worker is not reaped in the middle of a commit, and after it at once", async () => {
    const doomed = await store.registerWorker(workerInfo({ leaseMs: 1 }));
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(doomed, [], [run]));
    await lockTask(run.id);
    const commit = store.commit(batch(doomed, [transition(run.id, { events: [event("last")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    expect((await store.heartbeat(worker)).reapedWorkerIds).not.toContain(doomed.workerId);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
    expect((await store.heartbeat(worker)).reapedWorkerIds).toContain(doomed.workerId);
    expect(await store.commit(batch(doomed, []))).toEqual({ kind: "fenced" });
  });

  test("a commit that waited for its worker's reaper finds itself fenced", async () => {
    for (const howMany of [1, 3]) {
      const doomed = await store.registerWorker(workerInfo());
      const runs = newRuns(howMany, { due: { kind: "owned" } });
      await store.commit(batch(doomed, [], runs));
      await holdLock("SELECT 1 FROM pawl_workers WHERE id = $1 FOR UPDATE", [doomed.workerId]);
      const transitions = runs.map(({ id }) => transition(id, { events: [event("late")] }));
      const commit = store.commit(batch(doomed, transitions));
      await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
      await admin.query("UPDATE pawl_workers SET live = false WHERE id = $1", [doomed.workerId]);
      await admin.query("UPDATE pawl_tasks SET state = 1, owner = NULL, due_at = 0 WHERE owner = $1", [
        doomed.workerId,
      ]);
      await admin.query("COMMIT");
      expect(await commit).toEqual({ kind: "fenced" });
      expect((await store.logs(runs.map(({ id }) => id))).size).toBe(0);
    }
  });

  test("a worker enlists anew only when its old commits are through, and frees what they wrote", async () => {
    const info = workerInfo();
    const old = await store.registerWorker(info);
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(old, [], [run]));
    await lockTask(run.id);
    const born = newRun({ due: { kind: "owned" } });
    const moves = [transition(run.id, { events: [event("e")], next: park() })];
    const commit = store.commit(batch(old, moves, [born]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    const again = store.registerWorker(info);
    await waitUntil("the enlisting waits", async () => (await count(waitingSessions)) === 2);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
    expect(await again).toMatchObject({ epoch: old.epoch + 1 });
    expect(await store.tasks([born.id])).toMatchObject([{ state: "ready", owner: null }]);
  });

  test("a beat does not wait for a commit of its worker", async () => {
    const run = await startOwnedRun();
    await lockTask(run.id);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    expect(await store.heartbeat(worker)).toMatchObject({ isAlive: true });
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
  });

  test("a message that is committed while a park waits for its lock keeps the run", async () => {
    const run = await startOwnedRun();
    await holdLock("UPDATE pawl_tasks SET pending_messages = pending_messages + 1 WHERE run_id = $1", [run.id]);
    await admin.query("INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ($1, 'a', 'b', 0)", [run.id]);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed", notParked: [run.id] });
    expect(await store.tasks([run.id])).toMatchObject([{ state: "owned", pendingMessages: 1 }]);
  });

  test("a message that is committed while an end waits for its lock keeps the run from ending", async () => {
    const run = await startOwnedRun();
    await holdLock("UPDATE pawl_tasks SET pending_messages = pending_messages + 1 WHERE run_id = $1", [run.id]);
    await admin.query("INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ($1, 'a', 'b', 0)", [run.id]);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: finish() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    await admin.query("COMMIT");
    expect(await commit).toEqual({ kind: "conflict", runId: run.id, hasUnreadMessages: true });
    expect(await store.tasks([run.id])).toMatchObject([{ state: "owned", pendingMessages: 1 }]);
  });

  test("a task that gets mail during a claim is claimed all the same", async () => {
    const run = newRun();
    await store.commit(batch(null, [], [run]));
    // The fence is held by a stranger, so the claim has its snapshot but has not looked at tasks.
    await holdLock("SELECT 1 FROM pawl_workers WHERE id = $1 FOR UPDATE", [worker.workerId]);
    const claim = store.claim({ fence: worker, routes: routesOf(run), limit: 5, limitPerRoute: 5 });
    await waitUntil("the claim waits", async () => (await count(waitingSessions)) === 1);
    await store.send([newMessage(run.id, "x")]);
    await admin.query("COMMIT");
    expect(await claim).toMatchObject({ tasks: [{ run: { id: run.id }, pendingMessages: 1, isFresh: true }] });
  });

  test("a child is mailed in the very batch that it is born in, and a held one released", async () => {
    const parent = await startOwnedRun();
    const [mailed, held] = newRuns(2, { due: { kind: "held" } });
    const newChildren = [mailed, held].filter((run) => run !== undefined);
    const messages = [newMessage(mailed?.id ?? "", "first")];
    const given = transition(parent.id, {
      events: [event("e")],
      newChildren,
      messages,
      releasedChildIds: [held?.id ?? ""],
    });
    expect(await store.commit(batch(worker, [given]))).toMatchObject({ kind: "committed" });
    const tasks = await store.tasks(newChildren.map(({ id }) => id));
    expect(tasks).toMatchObject([
      { state: "ready", pendingMessages: 1 },
      { state: "ready", pendingMessages: 0 },
    ]);
    expect(await store.commit(batch(worker, [{ ...given, afterSeq: 0 }]))).toEqual({
      kind: "conflict",
      runId: parent.id,
    });
    expect(await store.tasks([mailed?.id ?? ""])).toMatchObject([{ pendingMessages: 1 }]);
  });

  test("batches that park, end and mail each other's runs never deadlock", async () => {
    const trouble: string[] = [];
    const stores = await Promise.all([1, 2].map(() => openStore({ onWarning: (what) => trouble.push(what) })));
    const workers = await Promise.all(stores.map((each) => each.registerWorker(workerInfo())));
    for (let round = 0; round < 40; round += 1) {
      const sides = stores.map(() => newRuns(8, { due: { kind: "owned" } }));
      for (const [side, runs] of sides.entries()) await stores[side]?.commit(batch(workers[side] ?? null, [], runs));
      await Promise.all(
        sides.map((runs, side) => {
          const targets = (sides[1 - side] ?? []).map(({ id }) => newMessage(id, "x"));
          const transitions = runs.map(({ id }, index) =>
            transition(id, {
              events: [event("e")],
              next: index % 2 ? park() : finish(),
              messages: targets.slice(0, 6),
            }),
          );
          return stores[side]?.commit(batch(workers[side] ?? null, side ? transitions.toReversed() : transitions));
        }),
      );
    }
    expect(trouble).toEqual([]);
  });

  test("a schema may have any name, and is a world of its own", async () => {
    const [here, there] = [await openStore({ schema: 'we"ird; Schema' }), await openStore({ schema: "pawl_other" })];
    const hints: Hint[] = [];
    there.watch((hint) => hints.push(hint));
    await waitUntil("the watcher is connected", () => hints.length > 0);
    hints.length = 0;
    const run = newRun();
    await here.commit(batch(null, [], [run]));
    expect(await here.run(run.id)).toMatchObject({ id: run.id });
    expect(await there.run(run.id)).toBeNull();
    expect(await store.run(run.id)).toBeNull();
    await sleep(100);
    expect(hints).toEqual([]);
    expect(await count(`"we""ird; Schema".pawl_runs`)).toBe(1);
  });

  test("a schema in the URL, which the driver passes over, is refused unless it is the one that is opened", async () => {
    const named = (schema: string) => `${database.url}?application_name=x&schema=${schema}`;
    await expect(openPostgres(named("t1"))).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(/"\?schema=t1".*connect\(url, \{ schema: "t1" \}\).*--schema t1/),
    });
    const [usual, chosen] = [await openPostgres(named("public")), await openPostgres(named("t1"), { schema: "t2" })];
    openedStores.push(usual, chosen);
    expect(usual.description).not.toContain("schema");
    expect(chosen.description).toContain("(schema t2)");
  });

  test("the search path of the connection decides where no schema is named", async () => {
    await admin.query("CREATE SCHEMA elsewhere");
    const url = new URL(database.url);
    url.searchParams.set("options", "-c search_path=elsewhere");
    const other = await openPostgres(url.href);
    openedStores.push(other);
    await other.migrate();
    expect(await count("pg_tables WHERE schemaname = 'elsewhere' AND tablename = 'pawl_runs'")).toBe(1);
  });

  test("a start on the caller's transaction is told to the caller's own process when it commits", async () => {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    await waitUntil("the watcher is connected", () => hints.length > 0);
    hints.length = 0;
    const run = newRun();
    await admin.query("BEGIN");
    await store.startInTransaction(admin, [run]);
    await sleep(50);
    expect(hints).toEqual([]);
    await admin.query("COMMIT");
    await waitUntil("the start is told", () =>
      hints.some((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow)),
    );
    stop();
  });

  test("what this process has done itself is told to it once, not again by the server", async () => {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    const other = await openStore();
    const [own, foreign] = [newRun(), newRun()];
    await store.commit(batch(null, [], [own]));
    await other.commit(batch(null, [], [foreign]));
    const of = ({ workflow }: { workflow: string }) =>
      hints.filter((hint) => hint.kind === "ready" && hint.workflows.includes(workflow)).length;
    await waitUntil("the other's start is told", () => of(foreign) === 1);
    await sleep(50);
    expect(of(own)).toBe(1);
    stop();
  });

  test("notify: false neither listens nor notifies", async () => {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    const quiet = await openStore({ notify: false });
    quiet.watch(() => {});
    await quiet.commit(batch(null, [], [newRun()]));
    await sleep(150);
    expect(hints.filter((hint) => hint.kind !== "anything")).toEqual([]);
    expect(await count("pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")).toBe(1);
    stop();
  });

  test("user code in a transaction has the server's own settings, and a limit to its silence", async () => {
    const transaction = await store.beginTransaction();
    const handle = transaction.handle as pg.PoolClient;
    const show = async (name: string) => Object.values((await handle.query(`SHOW ${name}`)).rows[0])[0];
    expect(await show("enable_hashjoin")).toBe("on");
    expect(await show("transaction_isolation")).toBe("read committed");
    expect(await show("idle_in_transaction_session_timeout")).toBe("1min");
    await transaction.rollback();
  });

  test("runs that sleep, are paused or have ended cost a claim next to nothing", async () => {
    const tables = tablesIn("public");
    const claimer = new Claimer(
      tables,
      createSqlClock(undefined),
      new ClaimBoundsTracker(systemRuntime.monotonic),
      systemRuntime,
    );
    const workflow = newRun().workflow;
    const settings = ["plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_bitmapscan = off"];
    for (const setting of settings) await admin.query(`SET ${setting}`);
    const buffers = async () => {
      let plan: { Plan: Record<string, number> } | undefined;
      await admin.query("BEGIN");
      await claimer.claim(
        async ({ text, values }) => {
          const { rows } = await admin.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...(values ?? [])]);
          plan = rows[0]["QUERY PLAN"][0];
          return [];
        },
        { fence: worker, routes: [{ workflow, version: "" }], limit: 10, limitPerRoute: 10 },
      );
      await admin.query("ROLLBACK");
      return (plan?.Plan["Shared Hit Blocks"] ?? 0) + (plan?.Plan["Shared Read Blocks"] ?? 0);
    };
    await store.commit(batch(null, [], newRuns(10, { workflow })));
    await buffers();
    const before = await buffers();
    await admin.query(
      `WITH r AS (INSERT INTO pawl_runs (id, created_at, priority, workflow, version, queue, status, input)
          SELECT gen_random_uuid(), 1, 0, $1, '', $1, 'waiting', '{}' FROM generate_series(1, 30000) RETURNING id)
        INSERT INTO pawl_tasks (run_id, due_at, priority, deliveries, pending_messages, state, fresh, workflow, version)
          SELECT id, CASE WHEN random() < 0.5 THEN 9e12 + random() * 1e9 END, 0, 0, 0, 0, false, $1, '' FROM r
          WHERE random() < 0.7`,
      [workflow],
    );
    const after = await buffers();
    // The trees have grown by a level or two; nothing is read in proportion to the rows.
    expect(after).toBeLessThan(before * 2 + 20);
  });

  test("dead rows that cannot be removed do not slow the claim down, and nothing is missed for long", async () => {
    const [first] = newRuns(1);
    const workflow = first?.workflow ?? "";
    const routes = [{ workflow, version: "" }];
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await holder.query("SELECT 1");
    for (let round = 0; round < 10; round += 1) {
      await admin.query(
        `INSERT INTO pawl_tasks (run_id, due_at, priority, deliveries, pending_messages, state, fresh, workflow, version)
          SELECT gen_random_uuid(), 1, 0, 0, 0, 1, false, $1, '' FROM generate_series(1, 5000)`,
        [workflow],
      );
      await admin.query("DELETE FROM pawl_tasks WHERE workflow = $1", [workflow]);
    }
    // The clock of the bounds makes every full claim a slow one, without waiting.
    let now = 0;
    const bounds = new ClaimBoundsTracker(() => now);
    const hampered = { tookMs: 100, oldestDueAt: await store.now(), priorities: [0], deadRows: 50_000 };
    bounds.recordFullScan(routes, hampered);
    const buffers: number[] = [];
    const claim = async () => {
      const claimer = new Claimer(tablesIn("public"), createSqlClock(undefined), bounds, systemRuntime);
      const request = { fence: worker, routes, limit: 5, limitPerRoute: 5 };
      await admin.query("BEGIN");
      await claimer.claim(async ({ text, values }) => {
        const { rows } = await admin.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...(values ?? [])]);
        buffers.push(rows[0]["QUERY PLAN"][0].Plan["Shared Hit Blocks"]);
        return [];
      }, request);
      await admin.query("ROLLBACK");
      return claimer.claim(
        async (query) => (await admin.query({ ...query, values: [...(query.values ?? [])] })).rows,
        request,
      );
    };
    const [plain, urgent] = [newRun({ workflow }), newRun({ workflow, priority: 7 })];
    await store.commit(batch(null, [], [plain, urgent]));
    const bounded = await claim();
    expect(bounded).toMatchObject({ tasks: [{ run: { id: plain.id } }] });
    expect((bounded as { nextDueAt: number }).nextDueAt - (bounded as { at: number }).at).toBe(1_000);
    now = 1_000;
    expect(await claim()).toMatchObject({ tasks: [{ run: { id: urgent.id } }], nextDueAt: null });
    expect(buffers[0]).toBeLessThan(100);
    expect(buffers[1]).toBeGreaterThan(500);
    await holder.end();
  });
});
