import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { InvalidInputError } from "../../core/errors/errors.js";
import type { SqliteDatabase } from "../sqlite/driver.js";
import { loadLibsql } from "./driver.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-libsql-"));
const { open } = await loadLibsql();
let files = 0;
let database: SqliteDatabase;
let other: SqliteDatabase;

beforeEach(() => {
  const file = join(folder, `${++files}.db`);
  database = open(file);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)");
  other = open(file);
});
afterEach(() => {
  database.close();
  other.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const insert = "INSERT INTO things VALUES (?, ?)";
const count = (from: SqliteDatabase) => from.prepare("SELECT count(*) AS n FROM things").get()?.n;

test("a statement that found the database locked does not prevent later transactions from committing", () => {
  other.exec("BEGIN IMMEDIATE");
  const [begin, write] = [database.prepare("BEGIN IMMEDIATE"), database.prepare(insert)];
  for (const locked of [() => begin.run(), () => write.run(1, "a")]) {
    expect(locked).toThrow(expect.objectContaining({ code: "SQLITE_BUSY" }));
  }
  other.exec("COMMIT");
  // New statements are used, because running a failed statement again would reset it.
  database.exec("BEGIN IMMEDIATE");
  expect(database.prepare(insert).run(2, "b").changes).toBe(1);
  database.exec("COMMIT");
  expect(count(other)).toBe(1);
});

test("a write outside of a transaction gets its own, which is not left open when the write fails", () => {
  const write = database.prepare(insert);
  expect(write.run(1, "a").changes).toBe(1);
  expect(count(other)).toBe(1);
  expect(() => write.run(1, "a")).toThrow("UNIQUE");
  expect(database.inTransaction).toBe(false);
  expect(other.prepare(insert).run(2, "b").changes).toBe(1);
});

test("run executes a statement that returns rows to its end", () => {
  database.exec("BEGIN IMMEDIATE");
  const changed = database.prepare("INSERT INTO things VALUES (1, 'a'), (2, 'b') RETURNING id").run();
  expect(changed).toEqual({ changes: 2 });
  database.prepare("COMMIT").run();
  expect(count(other)).toBe(2);
});

test("get returns the first row without extra columns, or undefined", () => {
  expect(database.prepare("SELECT 1 AS one, NULL AS none UNION SELECT 2, 3").get()).toEqual({
    one: 1,
    none: null,
  });
  expect(database.prepare("SELECT 1 WHERE 0").get()).toBeUndefined();
});

test("all returns every row, also more than the library fetches at a time", () => {
  const numbers =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n LIMIT ?";
  for (const limit of [0, 99, 100, 101, 200, 1000]) {
    const rows = database.prepare(numbers).all(limit);
    expect(rows.map((row) => row.i)).toEqual(Array.from({ length: limit }, (_, index) => index + 1));
  }
});

test("values of all supported types are bound", () => {
  const echo = database.prepare("SELECT ? AS value");
  for (const value of [null, 0, -1.5, Number.MAX_SAFE_INTEGER, "", "🐴"]) expect(echo.get(value)).toEqual({ value });
  expect(echo.get(7n)).toEqual({ value: 7 });
  expect(database.prepare("SELECT hex(?) AS value").get(Buffer.from("hi"))).toEqual({ value: "6869" });
});

test.each([true, undefined, {}, [1], new Date(0), Symbol("s"), () => {}])("%s is refused as a value", (value) => {
  const echo = database.prepare("SELECT ? AS value");
  for (const bind of [() => echo.get(value), () => echo.all(value), () => database.prepare(insert).run(1, value)]) {
    expect(bind).toThrow(InvalidInputError);
  }
});

test("a closed database is not in a transaction", () => {
  const closed = open(":memory:");
  closed.exec("BEGIN");
  expect(closed.inTransaction).toBe(true);
  closed.close();
  expect(closed.inTransaction).toBe(false);
});
