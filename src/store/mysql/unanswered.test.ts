/** Tests of a connection that stops answering during a commit, while its session keeps its locks on the server. */

import { randomUUID } from "node:crypto";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CuttingProxy } from "../../../test/support/cutting-proxy.js";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Batch, NewRun, Store, WorkerInfo } from "../contract/store.js";
import { StatementDeadline } from "../shared/statement-deadline.js";
import { openMysql } from "./index.js";
import { listSessions, ServerSessions } from "./server-sessions.js";

describe.skipIf(isLeftOut("mysql"))("a connection to MySQL that stops answering", () => {
  let database: TestDatabase;
  let proxy: CuttingProxy;
  let store: Store;
  let other: Connection;

  beforeAll(async () => {
    database = await emptyDatabase("mysql");
    proxy = await CuttingProxy.open(database.url);
    store = await openMysql(proxy.url);
    await store.migrate();
    other = await createConnection({ uri: database.url });
  });

  afterAll(async () => {
    await store.close();
    await proxy.close();
    await other.end();
    await database.drop();
  });

  const newWorker = (): WorkerInfo => {
    return { id: randomUUID(), name: "w", host: "h", pid: 1, port: null, routes: [], leaseMs: 3_000 };
  };

  const newRun = (): NewRun => ({
    ...{ id: randomUUID(), workflow: "w", version: "", queue: "w", priority: 0, input: "{}", heroType: null },
    ...{ heroId: null, heroKey: null, tags: [], startKey: null, parentId: null, parentNode: null },
    ...{ parentIndex: null, parentAttempt: null, due: { kind: "owned" } },
  });

  /** The number of other sessions that have an open transaction. */
  const openTransactions = async () => {
    const [rows] = await other.query(
      "SELECT t.trx_id FROM information_schema.innodb_trx t JOIN information_schema.processlist p " +
        "ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()",
    );
    return (rows as object[]).length;
  };

  test("during a commit: its session is ended before the commit rejects, and late packets are not executed", async () => {
    const fence = await store.registerWorker(newWorker());
    const run = newRun();
    await store.commit({ fence, transitions: [], starts: [run] });
    const events = [{ type: "step.completed", node: "a", attempt: 1, outcome: "success", data: "the-mark" }];
    const next = {
      kind: "park",
      status: "waiting",
      waiting: null,
      startedAt: null,
      wakeAt: null,
      wakeInMs: null,
    } as const;
    const rest = { drainedInboxIds: [], newChildren: [], messages: [], releasedChildIds: [], cursors: [] };
    const batch: Batch = { fence, transitions: [{ runId: run.id, afterSeq: 0, events, next, ...rest }], starts: [] };
    proxy.cut({ marks: ["FOR UPDATE", "the-mark"], lose: "time" });
    await expect(store.commit(batch)).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
    expect(await openTransactions()).toBe(0);
    expect(await store.log(run.id, { after: 0, limit: 10 })).toEqual([]);
    proxy.deliverLate();
    expect(await store.commit(batch)).toMatchObject({ kind: "committed" });
    expect(await store.log(run.id, { after: 0, limit: 10 })).toHaveLength(1);
    await store.deregisterWorker(fence);
  }, 300_000);

  test("while idle: after the first one, no other broken idle connection is used", async () => {
    const fence = await store.registerWorker(newWorker());
    await Promise.all(Array.from({ length: 10 }, () => store.now()));
    proxy.swallowOpen();
    // The first one is found after a third of the lease. Finding each of the others would take as long again.
    expect((await store.heartbeat(fence)).isAlive).toBe(true);
    const answers = await Promise.all(Array.from({ length: 10 }, () => store.now()));
    expect(answers).toHaveLength(10);
    expect((await store.heartbeat(fence)).isAlive).toBe(true);
    await store.deregisterWorker(fence);
  }, 300_000);
});

describe("the session of a connection that was given up", () => {
  /** A fake server with these sessions; a killed session disappears. */
  const fakeServer = (sessions: { Id: number; Host: string; Command: string; State: string }[]) => {
    const killed: string[] = [];
    const connection = {
      query: async (text: string) => {
        if (text === listSessions) return [sessions];
        killed.push(text);
        const at = sessions.findIndex(({ Id }) => text === `KILL ${Id}`);
        sessions.splice(at, 1);
        return [{}];
      },
      reset: async () => {},
      end: async () => {},
      destroy: () => {},
      on: () => {},
    };
    const driver = { createConnection: async () => connection, escape: (value: string) => value };
    const lostConnection = { ...connection };
    const server = new ServerSessions(driver, "mysql://fake/fake", new StatementDeadline(systemRuntime), systemRuntime);
    server.register(lostConnection, 5, [{ Id: 5, Host: "10.0.0.1:4000", Command: "Query", State: "" }]);
    return { server, lostConnection, killed };
  };

  const session = { Id: 5, Host: "10.0.0.1:4000", Command: "Sleep", State: "" };

  test("is killed, and its end is awaited", async () => {
    const { server, lostConnection, killed } = fakeServer([session, { ...session, Id: 6 }]);
    server.markLost(lostConnection);
    await server.endLostSessions();
    expect(killed).toEqual(["KILL 5"]);
    expect(server.hasNoLostSessions).toBe(true);
  });

  test("is not confused with a session of the same id on another server or after a restart", async () => {
    const { server, lostConnection, killed } = fakeServer([{ ...session, Host: "10.0.0.9:4000" }]);
    server.markLost(lostConnection);
    await server.endLostSessions();
    await server.killSession(lostConnection);
    expect(killed).toEqual([]);
    expect(await server.isExecuting(lostConnection)).toBe(false);
  });

  test.each([
    ["Sleep", "", false],
    ["Query", "Updating", true],
    ["Execute", "", true],
    ["Query", "Writing to net", false],
    ["Query", "Sending to client", false],
  ])('with the command %s and the state "%s" is executing: %s', async (command, state, isExecuting) => {
    const { server, lostConnection } = fakeServer([{ ...session, Command: command, State: state }]);
    expect(await server.isExecuting(lostConnection)).toBe(isExecuting);
  });
});
