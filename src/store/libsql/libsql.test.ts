/** Tests beyond the store suite: URLs, files that cannot be opened, users' databases, and the file after close. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import BetterSqlite from "better-sqlite3";
import Libsql from "libsql";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { InvalidInputError, StoreError } from "../../core/errors/errors.js";
import { batch, newRun } from "../../testing/store-suite/builders.js";
import type { Store } from "../contract/store.js";
import { openLibsql, type SqliteHandle } from "./index.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-libsql-"));
const stores: Store[] = [];
afterEach(async () => {
  vi.doUnmock("libsql");
  vi.resetModules();
  for (const store of stores.splice(0)) await store.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(url: string): Promise<Store> {
  const store = await openLibsql(url);
  stores.push(store);
  await store.migrate();
  return store;
}

test("all forms of URL for a file open the same file", async () => {
  const path = join(folder, "a name with % and #.db");
  const run = newRun();
  await (await open(`libsql:${path}`)).commit(batch(null, [], [run]));
  const here = relative(process.cwd(), path);
  const encoded = here.replaceAll("%", "%25").replaceAll("#", "%23").replaceAll(" ", "%20");
  for (const url of [`libsql://${path}`, `libsql:${here}`, pathToFileURL(path).href, `file:${encoded}`]) {
    expect(await (await open(url)).run(run.id), url).toMatchObject({ status: "pending" });
  }
});

test.each(["libsql::memory:", "file::memory:"])("%s opens a new database in memory each time", async (url) => {
  const run = newRun();
  await (await open(url)).commit(batch(null, [], [run]));
  const store = await open(url);
  expect(await store.run(run.id)).toBeNull();
  expect(store.description).toBe("libsql :memory:");
});

test("a file on another host is refused with an error that says which URLs are accepted", async () => {
  const error = await openLibsql("file://server/pawl.db").catch((error: unknown) => error);
  expect(error).toBeInstanceOf(InvalidInputError);
  expect((error as Error).message).toContain('"libsql:./pawl.db"');
});

test.each([
  ["libsql:", "names no file"],
  ["file:", "names no file"],
  ["file:./pawl.db?mode=ro", "consists of a path only"],
  ["file:///srv/pawl.db#main", "consists of a path only"],
  ["file:%zz", "not a valid file URL"],
  ["./pawl.db", 'begins with "libsql:"'],
  ["libsql:/no/such/place/pawl.db", "the directory /no/such/place does not exist"],
])("the URL %s is refused: %s", async (url, message) => {
  await expect(openLibsql(url)).rejects.toThrow(message);
});

test("the error for a file that is no database or cannot be opened says so", async () => {
  const text = join(folder, "text.db");
  writeFileSync(text, "Dear diary, ".repeat(1000));
  const dangling = join(folder, "dangling.db");
  symlinkSync(join(folder, "no", "such", "place.db"), dangling);
  mkdirSync(join(folder, "directory.db"));
  for (const [name, message, transient] of [
    ["text.db", "is not a SQLite database", false],
    ["dangling.db", "cannot be opened", true],
    ["directory.db", "is a directory", false],
  ] as const) {
    const error = await openLibsql(`libsql:${join(folder, name)}`).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient, message: expect.stringContaining(message) });
  }
});

test("without the package libsql, the error says what to install", async () => {
  vi.resetModules();
  vi.doMock("libsql", () => {
    throw Object.assign(new Error("Cannot find package 'libsql'"), { code: "ERR_MODULE_NOT_FOUND" });
  });
  const { openLibsql: openWithout } = await import("./index.js");
  await expect(openWithout("libsql::memory:")).rejects.toThrow("npm install libsql");
});

test("a closed file is complete without its write-ahead log", async () => {
  const file = join(folder, "closed.db");
  const store = await openLibsql(`libsql:${file}`);
  await store.migrate();
  const run = newRun();
  await store.commit(batch(null, [], [run]));
  // This opens the second connection, which must be closed as well.
  await (await store.beginTransaction()).rollback();
  await store.close();
  copyFileSync(file, join(folder, "copy.db"));
  expect(await (await open(`libsql:${join(folder, "copy.db")}`)).run(run.id)).toMatchObject({ status: "pending" });
});

test("a user's database must be of libsql, open, in a transaction and on the same file", async () => {
  const file = join(folder, "mine.db");
  const store = await open(`libsql:${file}`);
  const other = new BetterSqlite(join(folder, "other.db"));
  other.exec("BEGIN IMMEDIATE");
  await expect(store.startInTransaction(other, [newRun()])).rejects.toThrow("another SQLite library");
  other.close();
  const elsewhere = new Libsql(join(folder, "other.db"));
  elsewhere.exec("BEGIN IMMEDIATE");
  await expect(store.startInTransaction(elsewhere, [newRun()])).rejects.toThrow("but this store is libsql");
  elsewhere.close();
  await expect(store.startInTransaction(elsewhere, [newRun()])).rejects.toThrow("no open transaction");
  const mine = new Libsql(file);
  await expect(store.startInTransaction(mine, [newRun()])).rejects.toThrow("no open transaction");
  mine.close();
});

test("statements of user code that return rows do not prevent the commit of their transaction", async () => {
  const store = await open("libsql::memory:");
  const transaction = await store.beginTransaction();
  const { exec, prepare, query } = transaction.handle as SqliteHandle;
  exec("CREATE TABLE mine (value TEXT)");
  expect(prepare("INSERT INTO mine VALUES (?) RETURNING value").run("a").changes).toBe(1);
  expect(await query("INSERT INTO mine VALUES (?) RETURNING value", ["b"])).toEqual([{ value: "b" }]);
  expect(prepare("SELECT value FROM mine").get()).toEqual({ value: "a" });
  await expect(query("INSERT INTO mine VALUES (?)", [true])).rejects.toThrow("not: boolean");
  const run = newRun();
  expect(await transaction.commit(batch(null, [], [run]))).toMatchObject({ kind: "committed" });
  expect(await store.run(run.id)).toMatchObject({ status: "pending" });
});
