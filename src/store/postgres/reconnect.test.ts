/** Connections that are cut: nothing crashes, no acknowledged write is lost, and the store recovers. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
import { StoreError } from "../../core/errors/errors.js";
import { batch, event, newRun, transition, workerInfo } from "../../testing/store-suite/builders.js";
import type { Hint, Store } from "../contract/store.js";
import { openPostgres } from "./index.js";

describe.skipIf(isLeftOut("postgres"))("when connections are cut", () => {
  let database: TestDatabase;
  let admin: pg.Client;
  let store: Store;

  const terminateSessions = (condition = "true") =>
    admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`,
    );
  const waitUntil = async (condition: string, holds: () => boolean) => {
    const deadline = performance.now() + 8_000;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`It never came true that ${condition}.`);
      await sleep(10);
    }
  };

  beforeAll(async () => {
    database = await emptyDatabase("postgres");
    admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    store = await openPostgres(database.url);
    await store.migrate();
  });
  afterEach(() => sleep(50));
  afterAll(async () => {
    await store.close();
    await admin.end();
    await database.drop();
  });

  test("idle connections are replaced, and the next call does not notice", async () => {
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 6 }, () => store.now()));
      await terminateSessions();
      if (round % 2 === 0) await sleep(20);
      expect(await store.now()).toBeGreaterThan(0);
    }
  });

  test("reads are repeated until they succeed", async () => {
    let isOver = false;
    const cutting = (async () => {
      for (let cuts = 0; cuts < 10; cuts += 1) {
        await terminateSessions();
        await sleep(30);
      }
      isOver = true;
    })();
    while (!isOver) await Promise.all([store.now(), store.runs({ limit: 1 }), store.workers()]);
    await cutting;
  });

  test("after cuts, every acknowledged commit is in the log, and the others have failed with a transient error", async () => {
    const worker = await store.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(worker, [], [run]));
    let isOver = false;
    let [acknowledged, unknown, position] = [0, 0, 0];
    const writing = (async () => {
      while (!isOver) {
        const type = `e${position}`;
        try {
          const result = await store.commit(
            batch(worker, [transition(run.id, { afterSeq: position, events: [event(type)] })]),
          );
          expect(result).toMatchObject({ kind: "committed" });
          acknowledged += 1;
        } catch (error) {
          expect(error).toBeInstanceOf(StoreError);
          expect((error as StoreError).transient).toBe(true);
          unknown += 1;
        }
        // Like a worker, read the log to find out whether the event was written.
        const length = (await store.log(run.id, { after: 0, limit: 1e6 })).length;
        expect(length - position, "written once or not at all").toBeLessThanOrEqual(1);
        position = length;
      }
    })();
    for (let cuts = 0; cuts < 40; cuts += 1) {
      await terminateSessions("state = 'active'");
      await sleep(5);
    }
    isOver = true;
    await writing;
    expect(position).toBeGreaterThanOrEqual(acknowledged);
    expect(position).toBeLessThanOrEqual(acknowledged + unknown);
  });

  test("a commit whose answer is lost is not repeated, and fails with a transient error", async () => {
    const proxy = await startProxy(database.url);
    const proxiedStore = await openPostgres(proxy.url, { notify: false });
    const worker = await proxiedStore.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await proxiedStore.commit(batch(worker, [], [run]));
    for (let afterSeq = 0; afterSeq < 5; afterSeq += 1) {
      await proxiedStore.now();
      proxy.swallowNextAnswer();
      const eventBatch = batch(worker, [transition(run.id, { afterSeq, events: [event(`e${afterSeq}`)] })]);
      await expect(proxiedStore.commit(eventBatch)).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
      expect(await store.log(run.id, { after: 0, limit: 10 })).toHaveLength(afterSeq + 1);
    }
    await proxiedStore.close();
    await proxy.close();
  });

  test('the listener reconnects, sends the hint "anything", and receives notifications again', async () => {
    const other = await openPostgres(database.url);
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    await waitUntil("the listener is connected", () => hints.length > 0);
    for (let round = 0; round < 3; round += 1) {
      hints.length = 0;
      await terminateSessions("query LIKE 'LISTEN%'");
      await waitUntil('the hint "anything" arrives', () => hints.some(({ kind }) => kind === "anything"));
      const run = newRun();
      await other.commit(batch(null, [], [run]));
      await waitUntil("the hint about the start arrives", () =>
        hints.some((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow)),
      );
    }
    stop();
    await other.close();
  });

  test("a transaction that is cut fails with a transient error, and its place in the pool is free again", async () => {
    const worker = await store.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(worker, [], [run]));
    for (let round = 0; round < 10; round += 1) {
      const transaction = await store.beginTransaction();
      await terminateSessions("state = 'idle in transaction'");
      await sleep(10);
      const eventBatch = batch(worker, [transition(run.id, { events: [event("e")] })]);
      await expect(transaction.commit(eventBatch)).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
    }
    expect(await store.log(run.id, { after: 0, limit: 10 })).toEqual([]);
  });

  test("an unreachable server is a transient error, and a missing database is not", async () => {
    await expect(openPostgres("postgres://postgres@127.0.0.1:1/nowhere")).rejects.toMatchObject({ transient: true });
    await expect(openPostgres(`${database.url}_none`)).rejects.toMatchObject({ transient: false });
  });

  test("a store closes although its connections are cut, and refuses calls afterwards", async () => {
    const closingStore = await openPostgres(database.url);
    closingStore.watch(() => {});
    await closingStore.now();
    const transaction = await closingStore.beginTransaction();
    await terminateSessions();
    await closingStore.close();
    await closingStore.close();
    await expect(closingStore.now()).rejects.toMatchObject({ code: "STORE_ERROR", transient: false });
    await transaction.rollback();
  });
});

/** A proxy between a store and its server that can cut the connection after a statement has reached the server. */
async function startProxy(url: string) {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let isSwallowing = false;
  const server = createServer((clientSocket) => {
    const serverSocket = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [clientSocket, serverSocket]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        clientSocket.destroy();
        serverSocket.destroy();
      });
    }
    clientSocket.on("data", (data) => serverSocket.write(data));
    serverSocket.on("data", (data) => {
      if (!isSwallowing) return clientSocket.write(data);
      isSwallowing = false;
      return clientSocket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const proxyUrl = new URL(url);
  proxyUrl.port = String(port);
  proxyUrl.hostname = "127.0.0.1";
  return {
    url: proxyUrl.href,
    swallowNextAnswer: () => {
      isSwallowing = true;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
