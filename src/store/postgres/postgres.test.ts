/**
 * Behaviour of the PostgreSQL store alone: row locks, schemas, plans, notifications. The conformance suite tests the
 * rest.
 */

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
import { laneIdOf, runClassOf } from "../../core/limits/lane.js";
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

describe.skipIf(isLeftOut("postgres"))("the PostgreSQL store", () => {
  let database: TestDatabase;
  let admin: pg.Client;
  let store: Store;
  let worker: Fence;
  const openedStores: Store[] = [];

  const openStore = async (options: StoreOptions = {}) => {
    const openedStore = await openPostgres(database.url, options);
    openedStores.push(openedStore);
    await openedStore.migrate();
    return openedStore;
  };
  /** Locks a row in a transaction of another client. */
  const holdLock = async (sql: string, values: unknown[]) => {
    await admin.query("BEGIN");
    await admin.query(sql, values);
  };
  const lockTask = (runId: string) => holdLock("SELECT 1 FROM pawl_tasks WHERE run_id = $1 FOR UPDATE", [runId]);
  const count = async (sql: string, ...values: unknown[]) =>
    Number((await admin.query(`SELECT count(*) AS n FROM ${sql}`, values)).rows[0].n);
  const waitUntil = async (condition: string, holds: () => Promise<boolean> | boolean) => {
    const deadline = performance.now() + 8_000;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`It never came true that ${condition}.`);
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
    database = await emptyDatabase("postgres");
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

  test("a worker's commit to a run of another worker conflicts, alone and together with its own runs", async () => {
    const otherWorker = await store.registerWorker(workerInfo());
    const [own, theirs] = [await startOwnedRun(), newRun({ due: { kind: "owned" } })];
    await store.commit(batch(otherWorker, [], [theirs]));
    const keep = (run: { id: string }) => transition(run.id, { events: [event("e")] });
    for (const transitions of [[keep(theirs)], [keep(own), keep(theirs)]]) {
      expect(await store.commit(batch(worker, transitions))).toEqual({ kind: "conflict", runId: theirs.id });
    }
    expect(await store.commit(batch({ ...worker, epoch: 99 }, [keep(own)]))).toEqual({ kind: "fenced" });
    const logs = await store.logs([own.id, theirs.id]);
    expect([logs.get(own.id) ?? [], logs.get(theirs.id) ?? []]).toEqual([[], []]);
    expect(await store.commit(batch(worker, [keep(own)]))).toMatchObject({
      kind: "committed",
      notParked: [],
      refused: [],
    });
    expect(await store.commit(batch(worker, [keep(own)]))).toEqual({ kind: "conflict", runId: own.id });
  });

  test("a client's commit conflicts if it would leave a gap in the log or begin inside one of its rows", async () => {
    const run = newRun({ due: { kind: "held" } });
    await store.commit(batch(null, [], [run]));
    const move = (afterSeq: number) =>
      store.commit(batch(null, [transition(run.id, { afterSeq, events: [event("a"), event("b")], next: park() })]));
    expect(await move(0)).toMatchObject({ kind: "committed" });
    for (const after of [0, 1, 3]) expect(await move(after)).toEqual({ kind: "conflict", runId: run.id });
    expect(await move(2)).toMatchObject({ kind: "committed" });
    expect((await store.log(run.id, { after: 0, limit: 10 })).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  });

  test("a worker with an expired lease is not reaped during a commit, but by the next heartbeat after it", async () => {
    const expiring = await store.registerWorker(workerInfo({ leaseMs: 1 }));
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(expiring, [], [run]));
    await lockTask(run.id);
    const commit = store.commit(batch(expiring, [transition(run.id, { events: [event("last")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    expect((await store.heartbeat(worker)).reapedWorkerIds).not.toContain(expiring.workerId);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
    expect((await store.heartbeat(worker)).reapedWorkerIds).toContain(expiring.workerId);
    expect(await store.commit(batch(expiring, []))).toEqual({ kind: "fenced" });
  });

  test("a commit that waits while its worker is reaped is fenced", async () => {
    for (const runCount of [1, 3]) {
      const expiring = await store.registerWorker(workerInfo());
      const runs = newRuns(runCount, { due: { kind: "owned" } });
      await store.commit(batch(expiring, [], runs));
      await holdLock("SELECT 1 FROM pawl_workers WHERE id = $1 FOR UPDATE", [expiring.workerId]);
      const transitions = runs.map(({ id }) => transition(id, { events: [event("late")] }));
      const commit = store.commit(batch(expiring, transitions));
      await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
      await admin.query("UPDATE pawl_workers SET live = false WHERE id = $1", [expiring.workerId]);
      await admin.query("UPDATE pawl_tasks SET state = 1, owner = NULL, due_at = 0 WHERE owner = $1", [
        expiring.workerId,
      ]);
      await admin.query("COMMIT");
      expect(await commit).toEqual({ kind: "fenced" });
      expect((await store.logs(runs.map(({ id }) => id))).size).toBe(0);
    }
  });

  test("a worker registers again only after its old commits have ended, and frees the runs that they created", async () => {
    const info = workerInfo();
    const oldFence = await store.registerWorker(info);
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(oldFence, [], [run]));
    await lockTask(run.id);
    const createdRun = newRun({ due: { kind: "owned" } });
    const transitions = [transition(run.id, { events: [event("e")], next: park() })];
    const commit = store.commit(batch(oldFence, transitions, [createdRun]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    const registration = store.registerWorker(info);
    await waitUntil("the registration waits", async () => (await count(waitingSessions)) === 2);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
    expect(await registration).toMatchObject({ epoch: oldFence.epoch + 1 });
    expect(await store.tasks([createdRun.id])).toMatchObject([{ state: "ready", owner: null }]);
  });

  test("a heartbeat does not wait for a commit of its worker", async () => {
    const run = await startOwnedRun();
    await lockTask(run.id);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    expect(await store.heartbeat(worker)).toMatchObject({ isAlive: true });
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed" });
  });

  test("a run is not parked if a message is committed while the park waits for the lock", async () => {
    const run = await startOwnedRun();
    await holdLock("UPDATE pawl_tasks SET pending_messages = pending_messages + 1 WHERE run_id = $1", [run.id]);
    await admin.query("INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ($1, 'a', 'b', 0)", [run.id]);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: park() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    await admin.query("COMMIT");
    expect(await commit).toMatchObject({ kind: "committed", notParked: [run.id] });
    expect(await store.tasks([run.id])).toMatchObject([{ state: "owned", pendingMessages: 1 }]);
  });

  test("a run is not finished if a message is committed while the finish waits for the lock", async () => {
    const run = await startOwnedRun();
    await holdLock("UPDATE pawl_tasks SET pending_messages = pending_messages + 1 WHERE run_id = $1", [run.id]);
    await admin.query("INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ($1, 'a', 'b', 0)", [run.id]);
    const commit = store.commit(batch(worker, [transition(run.id, { events: [event("e")], next: finish() })]));
    await waitUntil("the commit waits", async () => (await count(waitingSessions)) === 1);
    await admin.query("COMMIT");
    expect(await commit).toEqual({ kind: "conflict", runId: run.id, hasUnreadMessages: true });
    expect(await store.tasks([run.id])).toMatchObject([{ state: "owned", pendingMessages: 1 }]);
  });

  test("a task that receives a message during a claim is claimed all the same", async () => {
    const run = newRun();
    await store.commit(batch(null, [], [run]));
    // Another client holds the fence's lock, so the claim has its snapshot but has not read any task yet.
    await holdLock("SELECT 1 FROM pawl_workers WHERE id = $1 FOR UPDATE", [worker.workerId]);
    const claim = store.claim({ fence: worker, routes: routesOf(run), limit: 5, limitPerRoute: 5 });
    await waitUntil("the claim waits", async () => (await count(waitingSessions)) === 1);
    await store.send([newMessage(run.id, "x")]);
    await admin.query("COMMIT");
    expect(await claim).toMatchObject({ tasks: [{ run: { id: run.id }, pendingMessages: 1, isFresh: true }] });
  });

  describe("a start whose runs wait in a class", () => {
    const lane = laneIdOf("machine", "");
    const startWaiting = async (workflow = newRun().workflow) => {
      const run = newRun({ workflow });
      const runClass = runClassOf(workflow, "", [lane], "");
      await store.commit(batch(null, [], [{ ...run, runClass }]));
      return { run, classId: runClass.id, routes: [{ workflow, version: "" }] };
    };
    const routeOfTask = async (id: string) =>
      (await admin.query("SELECT workflow FROM pawl_tasks WHERE run_id = $1", [id])).rows[0]?.workflow;
    const registerMachine = () =>
      store.limits.register([{ name: "machine", concurrency: 10, rate: null, isHeldOpen: false }]);

    test("puts their tasks on the route of the class, and creates the class once", async () => {
      const { run, classId } = await startWaiting();
      const { run: second } = await startWaiting(run.workflow);
      expect([await routeOfTask(run.id), await routeOfTask(second.id)]).toEqual([classId, classId]);
      expect(await count("pawl_classes WHERE id = $1", classId)).toBe(1);
    });

    test("does not wait for a worker that is about to delete the class, and leaves the task to be sorted", async () => {
      const { run, classId } = await startWaiting();
      await holdLock("SELECT 1 FROM pawl_classes WHERE id = $1 FOR UPDATE", [classId]);
      const { run: second } = await startWaiting(run.workflow);
      await admin.query("COMMIT");
      expect(await routeOfTask(second.id)).toBe(run.workflow);
    });

    test("does not wait for an admission, nor an admission for it, and the class is not deleted under it", async () => {
      await registerMachine();
      const { run, classId, routes } = await startWaiting();
      // The lock of a start that is not committed yet.
      await holdLock("SELECT 1 FROM pawl_classes WHERE id = $1 FOR KEY SHARE", [classId]);
      expect(await store.limits.admit({ fence: worker, routes, limit: 10 })).toMatchObject({
        tasks: [{ run: { id: run.id } }],
      });
      await admin.query("COMMIT");
      expect(await count("pawl_classes WHERE id = $1", classId)).toBe(1);
      const { run: second } = await startWaiting(run.workflow);
      expect(await store.limits.admit({ fence: worker, routes, limit: 10 })).toMatchObject({
        tasks: [{ run: { id: second.id } }],
      });
      expect(await count("pawl_classes WHERE id = $1", classId)).toBe(0);
    });
  });

  test("a batch can send a message to a child that it creates, and release a held child that it creates", async () => {
    const parent = await startOwnedRun();
    const [receiver, held] = newRuns(2, { due: { kind: "held" } });
    const newChildren = [receiver, held].filter((run) => run !== undefined);
    const messages = [newMessage(receiver?.id ?? "", "first")];
    const parentTransition = transition(parent.id, {
      events: [event("e")],
      newChildren,
      messages,
      releasedChildIds: [held?.id ?? ""],
    });
    expect(await store.commit(batch(worker, [parentTransition]))).toMatchObject({ kind: "committed" });
    const tasks = await store.tasks(newChildren.map(({ id }) => id));
    expect(tasks).toMatchObject([
      { state: "ready", pendingMessages: 1 },
      { state: "ready", pendingMessages: 0 },
    ]);
    expect(await store.commit(batch(worker, [{ ...parentTransition, afterSeq: 0 }]))).toEqual({
      kind: "conflict",
      runId: parent.id,
    });
    expect(await store.tasks([receiver?.id ?? ""])).toMatchObject([{ pendingMessages: 1 }]);
  });

  test("batches that park and finish runs and send messages to each other's runs never deadlock", async () => {
    const warnings: string[] = [];
    const stores = await Promise.all([1, 2].map(() => openStore({ onWarning: (message) => warnings.push(message) })));
    const workers = await Promise.all(stores.map((openedStore) => openedStore.registerWorker(workerInfo())));
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
    expect(warnings).toEqual([]);
  });

  test("a schema may have any name and shares neither runs nor hints with other schemas", async () => {
    const [first, second] = [await openStore({ schema: 'we"ird; Schema' }), await openStore({ schema: "pawl_other" })];
    const hints: Hint[] = [];
    second.watch((hint) => hints.push(hint));
    await waitUntil("the watcher is connected", () => hints.length > 0);
    hints.length = 0;
    const run = newRun();
    await first.commit(batch(null, [], [run]));
    expect(await first.run(run.id)).toMatchObject({ id: run.id });
    expect(await second.run(run.id)).toBeNull();
    expect(await store.run(run.id)).toBeNull();
    await sleep(100);
    expect(hints).toEqual([]);
    expect(await count(`"we""ird; Schema".pawl_runs`)).toBe(1);
  });

  test("a schema in the URL, which the driver ignores, is refused unless it is the schema that is opened", async () => {
    const urlWith = (schema: string) => `${database.url}?application_name=x&schema=${schema}`;
    await expect(openPostgres(urlWith("t1"))).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(/"\?schema=t1".*connect\(url, \{ schema: "t1" \}\).*--schema t1/),
    });
    const [defaultStore, chosenStore] = [
      await openPostgres(urlWith("public")),
      await openPostgres(urlWith("t1"), { schema: "t2" }),
    ];
    openedStores.push(defaultStore, chosenStore);
    expect(defaultStore.description).not.toContain("schema");
    expect(chosenStore.description).toContain("(schema t2)");
  });

  test("without the option schema, the search path of the connection decides", async () => {
    await admin.query("CREATE SCHEMA elsewhere");
    const url = new URL(database.url);
    url.searchParams.set("options", "-c search_path=elsewhere");
    const other = await openPostgres(url.href);
    openedStores.push(other);
    await other.migrate();
    expect(await count("pg_tables WHERE schemaname = 'elsewhere' AND tablename = 'pawl_runs'")).toBe(1);
  });

  test("a start in the caller's transaction sends a hint to the caller's own process when it commits", async () => {
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
    await waitUntil("the hint arrives", () =>
      hints.some((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow)),
    );
    stop();
  });

  test("a commit of this process sends it one hint, and the server's notification of it is ignored", async () => {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    const other = await openStore();
    const [own, foreign] = [newRun(), newRun()];
    await store.commit(batch(null, [], [own]));
    await other.commit(batch(null, [], [foreign]));
    const hintCount = ({ workflow }: { workflow: string }) =>
      hints.filter((hint) => hint.kind === "ready" && hint.workflows.includes(workflow)).length;
    await waitUntil("the hint about the other start arrives", () => hintCount(foreign) === 1);
    await sleep(50);
    expect(hintCount(own)).toBe(1);
    stop();
  });

  test("notify: false neither listens nor notifies", async () => {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    const silentStore = await openStore({ notify: false });
    silentStore.watch(() => {});
    await silentStore.commit(batch(null, [], [newRun()]));
    await sleep(150);
    expect(hints.filter((hint) => hint.kind !== "anything")).toEqual([]);
    expect(await count("pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")).toBe(1);
    stop();
  });

  test("user code in a transaction has the server's own settings, and a limit for its idle time", async () => {
    const transaction = await store.beginTransaction();
    const handle = transaction.handle as pg.PoolClient;
    const show = async (name: string) => Object.values((await handle.query(`SHOW ${name}`)).rows[0])[0];
    expect(await show("enable_hashjoin")).toBe("on");
    expect(await show("transaction_isolation")).toBe("read committed");
    expect(await show("idle_in_transaction_session_timeout")).toBe("1min");
    await transaction.rollback();
  });

  test("sleeping, paused and ended runs cost a claim next to nothing", async () => {
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
    // The index trees have grown by a level or two, but the reads do not grow with the number of rows.
    expect(after).toBeLessThan(before * 2 + 20);
  });

  test("dead rows that vacuum cannot remove do not slow claims down, and no task is missed for long", async () => {
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
    // With its own clock the test records a slow full claim without waiting.
    let now = 0;
    const bounds = new ClaimBoundsTracker(() => now);
    const slowScan = { tookMs: 100, oldestDueAt: await store.now(), priorities: [0], deadRows: 50_000 };
    bounds.recordFullScan(routes, slowScan);
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
    const boundedClaim = await claim();
    expect(boundedClaim).toMatchObject({ tasks: [{ run: { id: plain.id } }] });
    expect((boundedClaim as { nextDueAt: number }).nextDueAt - (boundedClaim as { at: number }).at).toBe(1_000);
    now = 1_000;
    expect(await claim()).toMatchObject({ tasks: [{ run: { id: urgent.id } }], nextDueAt: null });
    expect(buffers[0]).toBeLessThan(100);
    expect(buffers[1]).toBeGreaterThan(500);
    await holder.end();
  });
});
