import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import { batch, newRun } from "../../testing/store-suite/builders.js";
import { loadDriver } from "./driver.js";
import { openSqlite } from "./index.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function storeErrorOf(work: () => Promise<unknown>): Promise<StoreError> {
  const error = await work().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

test("a URL, a path and a database in memory are opened", async () => {
  const path = join(folder, "forms.db");
  for (const form of [path, `sqlite:${path}`, `sqlite://${path}`, ":memory:", "sqlite::memory:"]) {
    const store = await openSqlite(form);
    await store.migrate();
    expect(store.description).toBe(`sqlite ${form.includes("memory") ? ":memory:" : path}`);
    await store.close();
  }
});

test("the error for a path that cannot be a database gives the path and the reason", async () => {
  const missing = join(folder, "no", "such", "place.db");
  expect(await storeErrorOf(() => openSqlite(missing))).toMatchObject({
    transient: false,
    message: expect.stringContaining(`the directory ${join(folder, "no", "such")} does not exist`),
  });
  const directory = join(folder, "directory.db");
  mkdirSync(directory);
  expect((await storeErrorOf(() => openSqlite(directory))).message).toContain("is a directory");
  expect((await storeErrorOf(() => openSqlite("sqlite:"))).message).toContain("names no file");
  const text = join(folder, "text.db");
  writeFileSync(text, "Dear diary, ".repeat(1000));
  const error = await storeErrorOf(() => openSqlite(text));
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining("is not a SQLite database") });
  expect(error.message).toContain(text);
  expect(readFileSync(text, "utf8")).toContain("Dear diary");
});

test("the error for a damaged file says that it is damaged", async () => {
  const path = join(folder, "damaged.db");
  const store = await openSqlite(path);
  await store.migrate();
  for (let count = 0; count < 20; count += 1) {
    const runs = Array.from({ length: 100 }, () => newRun({ input: "x".repeat(500) }));
    await store.commit(batch(null, [], runs));
  }
  await store.close();
  const bytes = readFileSync(path);
  bytes.fill(0xaa, 4096 * 3);
  writeFileSync(path, bytes);
  const error = await storeErrorOf(async () => {
    const damaged = await openSqlite(path);
    await damaged.runs({ limit: 1000 }).finally(() => damaged.close());
  });
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining("is damaged") });
});

test("an application's table named pawl_tasks stops the migration with an error and is left unchanged", async () => {
  const path = join(folder, "foreign.db");
  const { Database } = await loadDriver();
  const database = new Database(path);
  database.exec("CREATE TABLE pawl_tasks (mine TEXT)");
  const store = await openSqlite(path);
  await expect(store.migrate()).rejects.toThrow(/Migration 1 .*pawl_tasks already exists/);
  expect(await store.pendingMigrations()).toEqual([1]);
  expect(database.prepare("SELECT name FROM sqlite_master").all()).toMatchObject([{ name: "pawl_tasks" }]);
  database.close();
  await store.close();
});

test("calls on a closed store fail with an error that says so, and it may be closed again", async () => {
  const store = await openSqlite(":memory:");
  await store.migrate();
  await store.close();
  await store.close();
  expect((await storeErrorOf(() => store.run("x"))).message).toContain("is closed");
  expect((await storeErrorOf(() => store.send([]))).message).toContain("is closed");
  expect((await storeErrorOf(() => store.beginTransaction())).message).toContain("is closed");
});
