/** Limits are reported with an error, and passwords are never shown. */
import { inspect } from "node:util";
import { connect, InvalidInputError, MigrationError, workflow } from "pawl";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { silent, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

describe("passwords", () => {
  test.each([
    "postgress://user:SeCrEt@host/db",
    "oracle://host/db?password=SeCrEt",
    "oracle://SeCrEt",
    "user:SeCrEt@host/db",
    "//user:SeCrEt@host/db",
    "postgres://user:SeCrEt@host:port/db",
    "postgres://user:Se/CrEt@host/db",
    "postgres://user:Se#CrEt@host/db",
    "postgres://user:Se?CrEt@host:port/db",
    "postgres://user:Se%40CrEt@127.0.0.1:1/db",
    "postgres://user@127.0.0.1:1/db?password=SeCrEt",
    "postgres://[user:SeCrEt@host/db",
    "mysql://user:SeCrEt@host:port/db",
    "mysql://user:SeCrEt@127.0.0.1:1/db",
    "mysql://user:SeCrEt@127.0.0.1:3306",
    "mysql://user:Se/CrEt@host/db",
    "mysql://user:SeCr%ZZEt@127.0.0.1:1/db",
    "libsql://host?authToken=SeCrEt",
    "file://%zz?authToken=SeCrEt",
    "file:/x?authToken=SeCrEt",
  ])("connect(%j) fails without showing the password", async (url) => {
    const told: unknown[] = [];
    const tell = (...args: unknown[]) => void told.push(args);
    const error = await errorOf(connect(url, { logger: { ...silent, warn: tell, error: tell } }));
    const said = inspect([error, error.stack, told], { depth: 10, showHidden: true });
    expect(said).not.toMatch(/SeCrEt|CrEt|Se@CrEt/);
  });
});

forEachStore(
  (kind) => {
    test("a database that was migrated by a newer Pawl is refused, and the error names both versions", async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const open = (migrate: boolean) => connect(database.url, { migrate, logger: silent });
      await (await open(true)).close();
      await (await open(false)).close();
      const sql = await rawSql(database.url);
      await sql.query("INSERT INTO pawl_migrations (version, name, at) VALUES (7, 'later', 1)");
      await sql.close();
      for (const migrate of [true, false]) {
        const error = await errorOf(open(migrate));
        expect(error).toBeInstanceOf(MigrationError);
        expect(error.message).toContain("The tables have version 7, and this Pawl knows them up to version 1");
      }
    });
  },
  ["sqlite", "postgres", "mysql"],
);

const child = workflow("child", async (_ctx, n: unknown) => n);
const many = (count: number) => Array.from({ length: count }, (_, index) => `tag ${index}`);

test("tags and priorities have limits, in start options and in definitions", async () => {
  const w = await world();
  const refused = async (options: object) =>
    expect(await errorOf(w.pawl.start(child, 1, options)), inspect(options)).toBeInstanceOf(InvalidInputError);
  await refused({ tags: many(101) });
  await refused({ tags: ["x".repeat(201)] });
  await refused({ tags: "red" });
  await refused({ tags: [1] });
  await refused({ priority: 1_000_001 });
  await refused({ priority: 0.5 });
  await refused({ idempotencyKey: "x".repeat(201) });
  expect(() => workflow("tagged", { tags: many(101) }, async () => 1)).toThrow(/at most 100 tags, not 101/);
  const half = workflow("half", { tags: many(60) }, async () => 1);
  expect(await errorOf(w.pawl.start(half, undefined, { tags: many(60) }))).toBeInstanceOf(InvalidInputError);
  expect(await w.pawl.start(child, 1, { tags: many(100), priority: -1_000_000 })).toBeDefined();
});

test.each([
  ["too many tags", { tags: many(101) }],
  ["a tag that is too long", { tags: ["x".repeat(201)] }],
  ["tags that are no list", { tags: "red" }],
  ["a tag that is no text", { tags: [1] }],
  ["a priority that is too high", { priority: 1_000_001 }],
  ["a priority that is no number", { priority: "high" }],
  ["an option that does not exist", { delay: "1h" }],
])("a child with %s is refused in the code that starts it", async (_name, options) => {
  const w = await world();
  const parent = workflow("parent", async (ctx) => {
    for (const ask of [() => ctx.run(child, 1, options as never), () => ctx.start(child, 1, options as never)]) {
      const error = await errorOf(ask());
      expect(error).toBeInstanceOf(InvalidInputError);
    }
    return "refused";
  });
  const worker = await w.worker([parent, child]);
  const run = await w.pawl.start(parent);
  await worker.settle();
  expect(await run.result({ timeout: "100s" })).toBe("refused");
  expect((await w.pawl.runs({ workflow: child })).runs).toEqual([]);
});

describe("a map", () => {
  test("of more than 100,000 items is refused, and the error says what to do", async () => {
    const w = await world();
    const parent = workflow("parent", (ctx) => ctx.map(child, new Array(100_001).fill(0)));
    const worker = await w.worker([parent, child]);
    const run = await w.pawl.start(parent);
    await worker.settle();
    const { cause } = await errorOf(run.result({ timeout: "100s" }));
    expect(cause.message).toBe(
      "ctx.map takes at most 100,000 items, not 100,001: map over parts of them with a child workflow that maps over its part, or use a resumable step.",
    );
  });

  test("of several pages creates no child when one of its items cannot be stored", async () => {
    const w = await world();
    const items: unknown[] = Array.from({ length: 1_200 }, (_, index) => index);
    items[1_199] = () => {};
    const parent = workflow("parent", (ctx) => ctx.map(child, items));
    const worker = await w.worker([parent, child]);
    const run = await w.pawl.start(parent);
    await worker.settle();
    expect(await errorOf(run.result({ timeout: "100s" }))).toMatchObject({ cause: { code: "SERIALIZATION_ERROR" } });
    expect((await w.pawl.runs({ workflow: child })).runs).toEqual([]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("does not keep its items encoded: each page is encoded again when it is written", async () => {
    const w = await world();
    let encoded = 0;
    const items = Array.from({ length: 1_300 }, (_, index) => ({
      toJSON: () => {
        encoded += 1;
        return index;
      },
    }));
    const parent = workflow("parent", async (ctx) => (await ctx.map(child, items as unknown[])).length);
    const worker = await w.worker([parent, child]);
    const at: number[] = [];
    const commit = w.store.commit.bind(w.store);
    vi.spyOn(w.store, "commit").mockImplementation((batch) => {
      if (batch.transitions.some(({ newChildren }) => newChildren.length > 0)) at.push(encoded);
      return commit(batch);
    });
    const run = await w.pawl.start(parent);
    await worker.settle();
    expect(await run.result({ timeout: "100s" })).toBe(1_300);
    expect(at).toEqual([1_800, 2_300, 2_600]);
  });
});

describe("startMany", () => {
  test("of several pages starts nothing when one of its inputs cannot be stored", async () => {
    const w = await world();
    const inputs: unknown[] = Array.from({ length: 2_500 }, (_, index) => index);
    inputs[2_499] = () => {};
    expect(await errorOf(w.pawl.startMany(child, inputs))).toMatchObject({ code: "SERIALIZATION_ERROR" });
    expect((await w.pawl.runs()).runs).toEqual([]);
  });

  /** How many inputs had been encoded at the time of each commit. */
  async function startedMany(count: number) {
    const w = await world();
    let encoded = 0;
    const inputs = Array.from({ length: count }, (_, index) => ({
      toJSON: () => {
        encoded += 1;
        return index;
      },
    }));
    const at: number[] = [];
    const commit = w.store.commit.bind(w.store);
    vi.spyOn(w.store, "commit").mockImplementation((batch) => {
      at.push(encoded);
      return commit(batch);
    });
    const handles = await w.pawl.startMany(child, inputs as unknown[]);
    expect(handles).toHaveLength(count);
    for (const index of [0, 999, 1_000, count - 1]) expect((await handles[index]?.get())?.input).toBe(index);
    return at;
  }

  test("encodes thousands of small inputs once, and returns the handles in the order of the inputs", async () => {
    const at = await startedMany(2_500);
    expect(at[0]).toBe(2_500);
    expect(at.at(-1)).toBe(2_500);
  });

  test("encodes large inputs page by page, after checking all of them", async () => {
    const at = await startedMany(20_500);
    expect(at[0]).toBe(21_500);
    expect(at.at(-1)).toBe(41_000);
  });
});
