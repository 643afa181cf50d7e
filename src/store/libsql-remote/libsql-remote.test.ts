/** Tests beyond the store suite: tokens, large requests and responses, users' transactions, the server's time limit. */
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@libsql/client/ws";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ownSqld } from "../../../scripts/servers.mjs";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
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

test("opening a server that does not run fails with a transient StoreError", async () => {
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

describe.skipIf(isLeftOut("sqld"))("a server that requires tokens", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-sqld-"));
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  let server: Awaited<ReturnType<typeof ownSqld>>;
  const toBase64Json = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = `${toBase64Json({ alg: "EdDSA", typ: "JWT" })}.${toBase64Json({ a: "rw" })}`;
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

  test.each(["ws", "http"])("accepts a client with a valid token over %s", async (scheme) => {
    const url = server.url.replace(/^ws/, scheme);
    for (const [userUrl, options] of [
      [url, { authToken }],
      [`${url}?authToken=${authToken}`, {}],
    ] as const) {
      const store = await openLibsql(userUrl, options);
      expect(store.description).not.toContain(authToken);
      await store.migrate();
      await store.close();
    }
  });

  test.each(["ws", "http"])("refuses a missing or invalid token over %s with an error that says so", async (scheme) => {
    const url = server.url.replace(/^ws/, scheme);
    expect(await errorOf(openLibsql(url))).toMatchObject({
      transient: false,
      message: expect.stringContaining("requires a token: connect(url, { authToken })"),
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
    database = await emptyDatabase("sqld");
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

  const startOwnedRuns = async (count: number, overrides: Partial<NewRun> = {}) => {
    const fence = await store.registerWorker(workerInfo());
    const runs = newRuns(count, { due: { kind: "owned" }, ...overrides });
    await store.commit(batch(fence, [], runs));
    return { fence, runs };
  };
  const readMine = async () =>
    (await client.execute("SELECT value FROM mine ORDER BY value")).rows.map((row) => row.value);
  const largeJson = (size: number) => JSON.stringify("x".repeat(size));

  test("a commit that is too large for one request is written completely", async () => {
    const { fence, runs } = await startOwnedRuns(20);
    const moves = runs.map(({ id }) => transition(id, { events: [event("go", { data: largeJson(1_000_000) })] }));
    expect(await store.commit(batch(fence, moves))).toMatchObject({ kind: "committed" });
    const logs = await store.logs(runs.map(({ id }) => id));
    expect([...logs.values()].flat()).toHaveLength(20);
  });

  test("a conflict in a commit of several requests refuses the whole commit and names the run", async () => {
    const { fence, runs } = await startOwnedRuns(20);
    const last = runs.at(-1) as NewRun;
    const moves = runs.map(({ id }) =>
      transition(id, { events: [event("go", { data: largeJson(1_000_000) })], afterSeq: id === last.id ? 7 : 0 }),
    );
    expect(await store.commit(batch(fence, moves))).toEqual({ kind: "conflict", runId: last.id });
    expect((await store.logs(runs.map(({ id }) => id))).size).toBe(0);
  });

  test("a value that is too large for any request is a permanent error", async () => {
    const { fence, runs } = await startOwnedRuns(1);
    const move = transition(runs[0]?.id as string, { events: [event("go", { data: largeJson(17_000_000) })] });
    expect(await errorOf(store.commit(batch(fence, [move])))).toMatchObject({ transient: false });
  });

  test("a claim returns all inputs, also more than fit into one response", async () => {
    const runs = newRuns(15, { workflow: "large", input: largeJson(1_000_000) });
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

  test("half of a surrogate pair is stored as U+FFFD and does not break the connection", async () => {
    const run = newRun({ heroType: "User", heroId: "a\ud800b" });
    await store.commit(batch(null, [], [run]));
    expect((await store.run(run.id))?.heroId).toBe("a\ufffdb");
  });

  test("a task without a run does not prevent the claim of other tasks", async () => {
    const runs = newRuns(2, { workflow: "orphaned" });
    await store.commit(batch(null, [], runs));
    await client.execute({ sql: "DELETE FROM pawl_runs WHERE id = ?", args: [runs[0]?.id as string] });
    const fence = await store.registerWorker(workerInfo());
    const routes = [{ workflow: "orphaned", version: "" }];
    const claim = await store.claim({ fence, routes, limit: 10, limitPerRoute: 10 });
    expect(claim).toMatchObject({ tasks: [{ run: { id: runs[1]?.id } }] });
  });

  test("a batch that is refused at its last transition writes nothing of the others", async () => {
    const { fence, runs } = await startOwnedRuns(2);
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

  describe("the transaction of a transactional step", () => {
    const begin = async () => {
      const transaction = await store.beginTransaction();
      return { transaction, tx: transaction.handle as LibsqlTransactionHandle };
    };

    test("accepts all forms of statements that @libsql/client accepts", async () => {
      const { fence, runs } = await startOwnedRuns(1);
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
      expect(await readMine()).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
    });

    test("is ended after five seconds if another writer waits, and the error says so", async () => {
      const { fence, runs } = await startOwnedRuns(1);
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('slow')");
      // The other writer succeeds because the server ends the transaction.
      await client.execute("INSERT INTO mine VALUES ('other')");
      const error = await errorOf(tx.execute("INSERT INTO mine VALUES ('late')"));
      expect(error).toBeInstanceOf(TransactionError);
      expect(error).toMatchObject({ message: expect.stringContaining("5 seconds") });
      // Without the guard this would commit by itself.
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('later')"))).toBeInstanceOf(TransactionError);
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await errorOf(transaction.commit(batch(fence, [move])))).toBeInstanceOf(TransactionError);
      expect(await readMine()).toEqual(["other"]);
    });

    test("cannot be committed if the server ended it after the last statement", async () => {
      const { fence, runs } = await startOwnedRuns(1);
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('slow')");
      await client.execute("INSERT INTO mine VALUES ('other')");
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await errorOf(transaction.commit(batch(fence, [move])))).toMatchObject({
        code: "TRANSACTION_ERROR",
        message: expect.stringContaining("5 seconds"),
      });
      expect(await readMine()).toEqual(["other"]);
      expect((await store.logs([runs[0]?.id as string])).size).toBe(0);
    });

    test("refuses further statements after a constraint has rolled it back, even if the error was caught", async () => {
      const { transaction, tx } = await begin();
      await tx.execute("INSERT INTO mine VALUES ('a')");
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('a')"))).toMatchObject({ code: "SQLITE_CONSTRAINT" });
      expect(await errorOf(tx.execute("INSERT INTO mine VALUES ('b')"))).toBeInstanceOf(TransactionError);
      await transaction.rollback();
      expect(await readMine()).toEqual([]);
    });

    test("continues after an error that rolled back only its statement", async () => {
      const { fence, runs } = await startOwnedRuns(1);
      const { transaction, tx } = await begin();
      expect(await errorOf(tx.execute("INSERT INTO nowhere VALUES (1)"))).toMatchObject({
        message: expect.stringContaining("no such table"),
      });
      await tx.execute("INSERT INTO mine VALUES ('a')");
      const move = transition(runs[0]?.id as string, { events: [event("paid")] });
      expect(await transaction.commit(batch(fence, [move]))).toMatchObject({ kind: "committed" });
      expect(await readMine()).toEqual(["a"]);
    });

    test("waits for an earlier transaction of the same process", async () => {
      const first = await begin();
      const second = begin();
      await first.tx.execute("INSERT INTO mine VALUES ('first')");
      await first.transaction.rollback();
      await (await second).tx.execute("INSERT INTO mine VALUES ('second')");
      await (await second).transaction.rollback();
      expect(await readMine()).toEqual([]);
    });
  });

  test("runs started in a transaction of @libsql/client exist once it is committed", async () => {
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
    expect(await readMine()).toEqual(["commit"]);
    const tx = await client.transaction("write");
    const again = newRun({ workflow: kept.workflow, startKey: "k" });
    expect(await store.startInTransaction(tx, [again])).toMatchObject({ refused: [{ reason: "startKey" }] });
    await tx.rollback();
  });

  test("a client, or an object without the methods of a transaction, is refused as a transaction", async () => {
    expect(await errorOf(store.startInTransaction(client, [newRun()]))).toMatchObject({
      message: expect.stringContaining("`tx` is a client"),
    });
    expect(await errorOf(store.startInTransaction({}, [newRun()]))).toMatchObject({
      message: expect.stringContaining("must be a transaction of @libsql/client"),
    });
  });

  test("commits, claims and transactions work over HTTP", async () => {
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
    expect(await readMine()).toEqual(["http"]);
    await other.close();
  });
});
