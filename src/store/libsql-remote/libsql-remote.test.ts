/** Beyond the suite: tokens, what is too large for the server, transactions of the user's, one that lasts too long. */
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@libsql/client/ws";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ownSqld } from "../../../scripts/servers.mjs";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/support/databases.js";
import { StoreError, TransactionError } from "../../core/errors/errors.js";
import { batch, event, finish, newRun, newRuns, transition, workerInfo } from "../../testing/store-suite/builders.js";
import type { NewRun, Store } from "../contract/store.js";
import { openLibsql } from "../libsql/index.js";
import type { LibsqlTransactionHandle } from "./handle.js";

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

test("a server that is not there is an error of the store, which may be there later", async () => {
  for (const url of ["ws://127.0.0.1:3", "http://127.0.0.1:3"]) {
    const error = await errorOf(openLibsql(url));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      transient: true,
      unreachable: true,
      message: expect.stringContaining("ECONNREFUSED"),
    });
  }
});

describe.skipIf(isLeftOut("sqld"))("a server that asks for tokens", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-sqld-"));
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  let server: Awaited<ReturnType<typeof ownSqld>>;
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = `${encoded({ alg: "EdDSA", typ: "JWT" })}.${encoded({ a: "rw" })}`;
  const authToken = `${head}.${sign(null, Buffer.from(head), privateKey).toString("base64url")}`;

  beforeAll(async () => {
    const key = join(folder, "key.pem");
    writeFileSync(key, publicKey.export({ type: "spki", format: "pem" }));
    server = await ownSqld({ args: ["--auth-jwt-key-file", key], token: authToken });
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(["ws", "http"])("lets in those who have one, by %s", async (scheme) => {
    const url = server.url.replace(/^ws/, scheme);
    for (const [given, options] of [
      [url, { authToken }],
      [`${url}?authToken=${authToken}`, {}],
    ] as const) {
      const store = await openLibsql(given, options);
      expect(store.description).not.toContain(authToken);
      await store.migrate();
      await store.close();
    }
  });

  test.each(["ws", "http"])("tells the others by %s that they need one, or another", async (scheme) => {
    const url = server.url.replace(/^ws/, scheme);
    expect(await errorOf(openLibsql(url))).toMatchObject({
      transient: false,
      message: expect.stringContaining("asks for a token: connect(url, { authToken })"),
    });
    expect(await errorOf(openLibsql(url, { authToken: "nonsense" }))).toMatchObject({
      transient: false,
      message: expect.stringContaining("refuses the token"),
    });
  });
});

describe.skipIf(isLeftOut("sqld"))("a libSQL server", () => {
  let database: TestDatabase;
  let store: Store;
  let client: Client;

  beforeAll(async () => {
    database = await testDatabase("sqld");
    store = await openLibsql(database.url);
    await store.migrate();
    client = createClient({ url: database.url });
    await client.execute("CREATE TABLE mine (value TEXT UNIQUE ON CONFLICT ROLLBACK)");
  });
  afterEach(() => client.execute("DELETE FROM mine"));
  afterAll(async () => {
    client.close();
    await store.close();
    await database.drop();
  });

  const owned = async (count: number, overrides: Partial<NewRun> = {}) => {
    const fence = await store.registerWorker(workerInfo());
    const runs = newRuns(count, { due: { kind: "owned" }, ...overrides });
    await store.commit(batch(fence, [], runs));
    return { fence, runs };
  };
  const mine = async () => (await client.execute("SELECT value FROM mine ORDER BY value")).rows.map((row) => row.value);
  const large = (size: number) => JSON.stringify("x".repeat(size));

  test("a commit that is too large for one message is whole all the same", async () => {
    const { fence, runs } = await owned(20);
    const moves = runs.map(({ id }) => transition(id, { events: [event("go", { data: large(1_000_000) })] }));
    expect(await store.commit(batch(fence, moves))).toMatchObject({ kind: "committed" });
    const logs = await store.logs(runs.map(({ id }) => id));
    expect([...logs.values()].flat()).toHaveLength(20);
  });

  test("a commit that is too large for one message is refused as a whole, and says which run it was", async () => {
    const { fence, runs } = await owned(20);
    const last = runs.at(-1) as NewRun;
    const moves = runs.map(({ id }) =>
      transition(id, { events: [event("go", { data: large(1_000_000) })], afterSeq: id === last.id ? 7 : 0 }),
    );
    expect(await store.commit(batch(fence, moves))).toEqual({ kind: "conflict", runId: last.id });
    expect((await store.logs(runs.map(({ id }) => id))).size).toBe(0);
  });

  test("a value that no message has room for is an error, and not tried again", async () => {
    const { fence, runs } = await owned(1);
    const move = transition(runs[0]?.id as string, { events: [event("go", { data: large(17_000_000) })] });
    expect(await errorOf(store.commit(batch(fence, [move])))).toMatchObject({ transient: false });
  });

  test("a claim of more input than fits into one answer gives all of it", async () => {
    const runs = newRuns(15, { workflow: "large", input: large(1_000_000) });
    for (const run of runs) await store.commit(batch(null, [], [run]));
    const fence = await store.registerWorker(workerInfo());
    const claim = await store.claim({
      fence,
      routes: [{ workflow: "large", version: "" }],
      limit: 100,
      limitPerRoute: 100,
    });
    if (claim.kind !== "claimed") throw new Error("fenced");
    expect(claim.tasks.map(({ run }) => run.id)).toEqual(runs.map(({ id }) => id));
    expect(claim.tasks.every(({ run }) => run.input === runs[0]?.input && run.status === "running")).toBe(true);
  });

  test("half of a surrogate pair does not cost the connection", async () => {
    const run = newRun({ heroType: "User", heroId: "a\ud800b" });
    await store.commit(batch(null, [], [run]));
    expect((await store.run(run.id))?.heroId).toBe("a\ufffdb");
  });

  test("a run whose row is gone keeps no worker from the others", async () => {
    const runs = newRuns(2, { workflow: "orphaned" });
    await store.commit(batch(null, [], runs));
    await client.execute({ sql: "DELETE FROM pawl_runs WHERE id = ?", args: [runs[0]?.id as string] });
    const fence = await store.registerWorker(workerInfo());
    const routes = [{ workflow: "orphaned", version: "" }];
    const claim = await store.claim({ fence, routes, limit: 10, limitPerRoute: 10 });
    expect(claim).toMatchObject({ tasks: [{ run: { id: runs[1]?.id } }] });
  });

  test("a batch that is refused at its last transition leaves nothing of the others", async () => {
    const { fence, runs } = await owned(2);
    const [first, second] = runs as [NewRun, NewRun];
    await store.send([{ to: second.id, kind: "signal", data: "{}" }]);
    const child = newRun();
    const moves = [
      transition(first.id, { events: [event("go")], newChildren: [child], next: finish() }),
      transition(second.id, { events: [event("go")], next: finish() }),
    ];
    expect(await store.commit(batch(fence, moves))).toEqual({
      kind: "conflict",
      runId: second.id,
      hasUnreadMessages: true,
    });
    expect(await store.run(child.id)).toBeNull();
    expect((await store.logs([first.id, second.id])).size).toBe(0);
    expect(await store.tasks([first.id])).toMatchObject([{ state: "owned" }]);
  });

  describe("a transaction over user code", () => {
    const begin = async () => {
      const transaction = await store.beginTransaction();
      return { transaction, tx: transaction.handle as LibsqlTransactionHandle };
    };

    test("takes what @libsql/client takes", async () => {
      const { fence, runs } = await owned(1);
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('a')");
      await tx.execute("INSERT INTO mine VALUES (?)", ["b"]);
      await tx.execute({ sql: "INSERT INTO mine VALUES (:value)", args: { value: "c" } });
      await tx.batch(["INSERT INTO mine VALUES ('d')", { sql: "INSERT INTO mine VALUES (?)", args: ["e"] }]);
      await tx.executeMultiple("INSERT INTO mine VALUES ('f'); INSERT INTO mine VALUES ('g')");
      expect(await tx.query("SELECT count(*) AS n FROM mine WHERE value <> ?", ["a"])).toEqual([{ n: 6 }]);
      expect(tx.closed).toBe(false);
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await transaction.commit(batch(fence, [move]))).toMatchObject({ kind: "committed" });
      expect(tx.closed).toBe(true);
      expect(await mine()).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
    });

    test("that another writer has waited for is over after five seconds, and says so", async () => {
      const { fence, runs } = await owned(1);
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('slow')");
      // The other writer gets its turn because the server takes it from the transaction.
      await client.execute("INSERT INTO mine VALUES ('other')");
      const error = await errorOf(tx.execute("INSERT INTO mine VALUES ('late')"));
      expect(error).toBeInstanceOf(TransactionError);
      expect(error).toMatchObject({ message: expect.stringContaining("5 seconds") });
      // Without the guard this would commit by itself.
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('later')"))).toBeInstanceOf(TransactionError);
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await errorOf(transaction.commit(batch(fence, [move])))).toBeInstanceOf(TransactionError);
      expect(await mine()).toEqual(["other"]);
    });

    test("that has lost its transaction without noticing is not recorded", async () => {
      const { fence, runs } = await owned(1);
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('slow')");
      await client.execute("INSERT INTO mine VALUES ('other')");
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await errorOf(transaction.commit(batch(fence, [move])))).toMatchObject({
        code: "TRANSACTION_ERROR",
        message: expect.stringContaining("5 seconds"),
      });
      expect(await mine()).toEqual(["other"]);
      expect((await store.logs([runs[0]?.id as string])).size).toBe(0);
    });

    test("that a constraint has rolled back takes no more statements, even if the error was caught", async () => {
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('a')");
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('a')"))).toMatchObject({ code: "SQLITE_CONSTRAINT" });
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('b')"))).toBeInstanceOf(TransactionError);
      await transaction.rollback();
      expect(await mine()).toEqual([]);
    });

    test("goes on after an error that was its statement's alone", async () => {
      const { fence, runs } = await owned(1);
      const { transaction, tx } = await begin();
      expect(await errorOf(tx.execute("INSERT INTO nowhere VALUES (1)"))).toMatchObject({
        message: expect.stringContaining("no such table"),
      });
      await tx.execute("INSERT INTO mine VALUES ('a')");
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await transaction.commit(batch(fence, [move]))).toMatchObject({ kind: "committed" });
      expect(await mine()).toEqual(["a"]);
    });

    test("waits for another of the same process, which has begun before", async () => {
      const first = await begin();
      const second = begin();
      await first.tx.execute("INSERT INTO mine VALUES ('first')");
      await first.transaction.rollback();
      await (await second).tx.execute("INSERT INTO mine VALUES ('second')");
      await (await second).transaction.rollback();
      expect(await mine()).toEqual([]);
    });
  });

  test("runs are started on a transaction of @libsql/client, and are there when it is committed", async () => {
    const [kept, dropped] = [newRun({ startKey: "k" }), newRun()];
    for (const [run, end] of [
      [kept, "commit"],
      [dropped, "rollback"],
    ] as const) {
      const tx = await client.transaction("write");
      await tx.execute({ sql: "INSERT INTO mine VALUES (?)", args: [end] });
      expect(await store.startInTransaction(tx, [run])).toMatchObject({ refused: [] });
      await tx[end]();
    }
    expect(await store.run(kept.id)).toMatchObject({ status: "pending" });
    expect(await store.run(dropped.id)).toBeNull();
    expect(await mine()).toEqual(["commit"]);
    const tx = await client.transaction("write");
    const again = newRun({ workflow: kept.workflow, startKey: "k" });
    expect(await store.startInTransaction(tx, [again])).toMatchObject({ refused: [{ reason: "startKey" }] });
    await tx.rollback();
  });

  test("a client is not taken for a transaction", async () => {
    expect(await errorOf(store.startInTransaction(client, [newRun()]))).toMatchObject({
      message: expect.stringContaining("`tx` is a client"),
    });
    expect(await errorOf(store.startInTransaction({}, [newRun()]))).toMatchObject({
      message: expect.stringContaining("must be a transaction of @libsql/client"),
    });
  });

  test("HTTP does the same", async () => {
    const other = await openLibsql(database.url.replace(/^ws:/, "http:"));
    const run = newRun({ workflow: "by-http" });
    await other.commit(batch(null, [], [run]));
    const fence = await other.registerWorker(workerInfo());
    const claim = { fence, routes: [{ workflow: "by-http", version: "" }], limit: 1, limitPerRoute: 1 };
    expect(await other.claim(claim)).toMatchObject({ tasks: [{ run: { id: run.id } }] });
    const wrong = transition(run.id, { events: [event("go")], afterSeq: 3 });
    expect(await other.commit(batch(fence, [wrong]))).toEqual({ kind: "conflict", runId: run.id });
    const transaction = await other.beginTransaction();
    await (transaction.handle as LibsqlTransactionHandle).execute("INSERT INTO mine VALUES ('http')");
    await transaction.commit(batch(fence, [transition(run.id, { events: [event("go")] })]));
    expect(await mine()).toEqual(["http"]);
    await other.close();
  });
});
