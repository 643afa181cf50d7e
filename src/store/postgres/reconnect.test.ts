/** Connections that are cut: nothing crashes, nothing is lost that was acknowledged, and everything comes back. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/support/databases.js";
import { StoreError } from "../../core/errors/errors.js";
import { batch, event, newRun, transition, workerInfo } from "../../testing/store-suite/builders.js";
import type { Hint, Store } from "../contract/store.js";
import { openPostgres } from "./index.js";

describe.skipIf(isLeftOut("postgres"))("when connections are cut", () => {
  let database: TestDatabase;
  let admin: pg.Client;
  let store: Store;

  const terminateSessions = (which = "true") =>
    admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${which}`,
    );
  const waitUntil = async (what: string, holds: () => boolean) => {
    const deadline = performance.now() + 8_000;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`It never came true that ${what}.`);
      await sleep(10);
    }
  };

  beforeAll(async () => {
    database = await testDatabase("postgres");
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
    let over = false;
    const cutting = (async () => {
      for (let cuts = 0; cuts < 10; cuts += 1) {
        await terminateSessions();
        await sleep(30);
      }
      over = true;
    })();
    while (!over) await Promise.all([store.now(), store.runs({ limit: 1 }), store.workers()]);
    await cutting;
  });

  test("of commits that were cut, what was acknowledged is there, and the rest is reported as passing", async () => {
    const worker = await store.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(worker, [], [run]));
    let over = false;
    let [acknowledged, unknown, position] = [0, 0, 0];
    const writing = (async () => {
      while (!over) {
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
        // As a worker does: the log says what became of it.
        const length = (await store.log(run.id, { after: 0, limit: 1e6 })).length;
        expect(length - position, "written once or not at all").toBeLessThanOrEqual(1);
        position = length;
      }
    })();
    for (let cuts = 0; cuts < 40; cuts += 1) {
      await terminateSessions("state = 'active'");
      await sleep(5);
    }
    over = true;
    await writing;
    expect(position).toBeGreaterThanOrEqual(acknowledged);
    expect(position).toBeLessThanOrEqual(acknowledged + unknown);
  });

  test("a commit whose answer is lost is not repeated, and its error says that it may have been written", async () => {
    const proxy = await startProxy(database.url);
    const far = await openPostgres(proxy.url, { notify: false });
    const worker = await far.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await far.commit(batch(worker, [], [run]));
    for (let afterSeq = 0; afterSeq < 5; afterSeq += 1) {
      await far.now();
      proxy.swallowNextAnswer();
      const given = batch(worker, [transition(run.id, { afterSeq, events: [event(`e${afterSeq}`)] })]);
      await expect(far.commit(given)).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
      expect(await store.log(run.id, { after: 0, limit: 10 })).toHaveLength(afterSeq + 1);
    }
    await far.close();
    await proxy.close();
  });

  test("the listener comes back, says that something may have been missed, and hears again", async () => {
    const other = await openPostgres(database.url);
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    await waitUntil("it is connected", () => hints.length > 0);
    for (let round = 0; round < 3; round += 1) {
      hints.length = 0;
      await terminateSessions("query LIKE 'LISTEN%'");
      await waitUntil("it says so", () => hints.some(({ kind }) => kind === "anything"));
      const run = newRun();
      await other.commit(batch(null, [], [run]));
      await waitUntil("it hears", () =>
        hints.some((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow)),
      );
    }
    stop();
    await other.close();
  });

  test("a transaction that is cut fails with a passing error, and its place in the pool is free again", async () => {
    const worker = await store.registerWorker(workerInfo());
    const run = newRun({ due: { kind: "owned" } });
    await store.commit(batch(worker, [], [run]));
    for (let round = 0; round < 10; round += 1) {
      const transaction = await store.beginTransaction();
      await terminateSessions("state = 'idle in transaction'");
      await sleep(10);
      const given = batch(worker, [transition(run.id, { events: [event("e")] })]);
      await expect(transaction.commit(given)).rejects.toMatchObject({ code: "STORE_ERROR", transient: true });
    }
    expect(await store.log(run.id, { after: 0, limit: 10 })).toEqual([]);
  });

  test("a server that is not there is reported as passing, and nothing stays open", async () => {
    await expect(openPostgres("postgres://postgres@127.0.0.1:1/nowhere")).rejects.toMatchObject({ transient: true });
    await expect(openPostgres(`${database.url}_none`)).rejects.toMatchObject({ transient: false });
  });

  test("a store closes although its connections are gone, and refuses what comes later", async () => {
    const doomed = await openPostgres(database.url);
    doomed.watch(() => {});
    await doomed.now();
    const transaction = await doomed.beginTransaction();
    await terminateSessions();
    await doomed.close();
    await doomed.close();
    await expect(doomed.now()).rejects.toMatchObject({ code: "STORE_ERROR", transient: false });
    await transaction.rollback();
  });
});

/** Stands between a store and its server, and can cut the line after a question has got through. */
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
