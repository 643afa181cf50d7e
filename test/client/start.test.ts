import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { createClient } from "@libsql/client/ws";
import { createPool } from "mysql2";
import { createConnection, createPool as createPromisePool } from "mysql2/promise";
import { AlreadyActiveError, connect, discoverWorkflows, type RunHandle, signal, workflow } from "pawl";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type AnyStoreKind, emptyDatabase, forEachStore, isLeftOut, testDatabase } from "../support/databases.js";
import { mysqlTable, postgresTable, sqldTable, sqliteTable } from "../support/user-table.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const echo = workflow("echo", async (_ctx, value: unknown) => value);
const waiting = workflow("waiting", async (ctx, _input?: unknown) => {
  await ctx.waitForSignal("go");
});

async function connected(kind: AnyStoreKind, make = testDatabase) {
  const database = await make(kind);
  const pawl = await connect(database.url, { logger: silent });
  onTestFinished(async () => {
    await pawl.close();
    await database.drop();
  });
  return { pawl, url: database.url };
}

forEachStore((kind) => {
  test("50 concurrent starts with one idempotency key create one run", async () => {
    const { pawl, url } = await connected(kind);
    const clients = kind === "memory" ? [pawl] : [pawl, await connect(url, { logger: silent })];
    const runs = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        clients[n % clients.length]?.start(echo, { order: 42 }, { idempotencyKey: "order-42" }),
      ),
    );
    expect(new Set(runs.map((run) => run?.id)).size).toBe(1);
    expect((await pawl.runs({ workflow: echo })).runs).toHaveLength(1);
    for (const client of clients.slice(1)) await client.close();
  });

  test("50 concurrent starts for one hero create one run, and the others learn which one", async () => {
    const { pawl, url } = await connected(kind);
    const clients = kind === "memory" ? [pawl] : [pawl, await connect(url, { logger: silent })];
    const hero = { type: "User", id: "42" };
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) =>
        (clients[n % clients.length] as typeof pawl).start(waiting, undefined, { hero }),
      ),
    );
    const started = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const refused = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(started).toHaveLength(1);
    expect(refused).toHaveLength(49);
    for (const error of refused) {
      expect(error).toBeInstanceOf(AlreadyActiveError);
      expect(error).toMatchObject({ code: "ALREADY_ACTIVE", runId: started[0]?.id, hero, workflow: "waiting" });
    }
    expect((await pawl.runs()).runs).toHaveLength(1);
    for (const client of clients.slice(1)) await client.close();
  });

  test("a hero is free again when its run has ended, but not while it is paused", async () => {
    const { pawl } = await connected(kind);
    const hero = { type: "User", id: "7" };
    const first = await pawl.start(waiting, undefined, { hero });
    await first.pause();
    expect(await errorOf(pawl.start(waiting, undefined, { hero }))).toMatchObject({ code: "ALREADY_ACTIVE" });
    await first.cancel();
    const second = await pawl.start(waiting, undefined, { hero });
    expect(second.id).not.toBe(first.id);
  });

  test("runs with a higher priority are executed first, and runs of equal priority in the order in which they became due", async () => {
    const { pawl } = await connected(kind);
    const order: string[] = [];
    const noted = workflow("noted", (ctx, name: string) => ctx.step("note", () => void order.push(name)));
    const runs: RunHandle<string, void>[] = [];
    const planned = [
      ["low", -5],
      ["a", 0],
      ["high", 10],
      ["b", 0],
    ] as const;
    // The runs have been due since different instants in the past; among equal priorities the earliest comes first.
    for (const [index, [name, priority]] of planned.entries())
      runs.push(await pawl.start(noted, name, { priority, startAt: new Date(1_000 + index) }));
    await pawl.worker({ workflows: [noted], concurrency: 1 }).start();
    await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
    expect(order).toEqual(["high", "a", "b", "low"]);
  });

  test("names, keys, heroes and tags that differ only in case are distinct", async () => {
    const { pawl } = await connected(kind);
    const [lower, upper] = [workflow("order", async () => "lower"), workflow("ORDER", async () => "upper")];
    await pawl.worker({ workflows: [lower, upper] }).start();
    const a = await pawl.start(lower, undefined, { idempotencyKey: "key", tags: ["tag"] });
    const b = await pawl.start(lower, undefined, { idempotencyKey: "KEY", tags: ["TAG"] });
    const c = await pawl.start(upper, undefined, { idempotencyKey: "key" });
    expect(new Set([a.id, b.id, c.id]).size).toBe(3);
    expect([await a.result(), await b.result(), await c.result()]).toEqual(["lower", "lower", "upper"]);
    expect((await pawl.runs({ tag: "tag" })).runs.map(({ id }) => id)).toEqual([a.id]);
    expect((await pawl.runs({ workflow: "ORDER" })).runs.map(({ id }) => id)).toEqual([c.id]);
    await pawl.start(waiting, undefined, { hero: { type: "User", id: "abc" } });
    await pawl.start(waiting, undefined, { hero: { type: "User", id: "ABC" } });
    await pawl.start(waiting, undefined, { hero: { type: "USER", id: "abc" } });
    expect((await pawl.runs({ hero: { type: "User", id: "ABC" } })).runs).toHaveLength(1);
  });
});

describe("start inside the caller's own transaction", () => {
  const tables = { sqlite: sqliteTable, postgres: postgresTable, mysql: mysqlTable, sqld: sqldTable };
  forEachStore(
    (kind) => {
      test("creates the run when the transaction commits", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        await pawl.start(echo, "warm up");
        const own = await table.beginCallerTransaction();
        await table.write(own.tx, "mine");
        const run = await pawl.start(echo, { order: 1 }, { tx: own.tx });
        await own.commit();
        expect(await table.committedValues()).toEqual(["mine"]);
        await pawl.worker({ workflows: [echo] }).start();
        expect(await run.result({ timeout: "100s" })).toEqual({ order: 1 });
      });

      test("warns when no live worker has the workflow, and only then", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        const own = await table.beginCallerTransaction();
        const alone = await pawl.start(echo, 1, { tx: own.tx });
        await own.commit();
        expect(alone.warning).toBe('Workflow "echo" was started, but no live worker has it; the run waits for one.');
        const elsewhere = await connect(url, { logger: silent });
        onTestFinished(() => elsewhere.close());
        await elsewhere.worker({ workflows: [echo] }).start();
        const another = await table.beginCallerTransaction();
        const served = await pawl.start(echo, 2, { tx: another.tx });
        await another.commit();
        expect(served.warning).toBeNull();
      });

      test("leaves nothing behind when the transaction is rolled back", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        await pawl.createWorkflow("echo");
        const own = await table.beginCallerTransaction();
        await table.write(own.tx, "mine");
        const run = await pawl.start(echo, 1, { tx: own.tx, idempotencyKey: "k" });
        await own.rollback();
        expect(await table.committedValues()).toEqual([]);
        expect(await errorOf(run.get())).toMatchObject({ code: "RUN_NOT_FOUND" });
        const again = await pawl.start(echo, 2, { idempotencyKey: "k" });
        expect((await again.get()).input).toBe(2);
      });

      test("also registers the workflow, even when its first start is in a transaction", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        const own = await table.beginCallerTransaction();
        const run = await pawl.start(echo, 1, { tx: own.tx });
        await own.commit();
        expect(await run.status()).toBe("pending");
      });
    },
    ["sqlite", "postgres", "mysql", "sqld"],
  );

  test("refuses a libSQL client, whose statements commit on their own", async () => {
    const { pawl } = await connected("memory");
    const tx = createClient({ url: "ws://127.0.0.1:3" });
    const refusal = { code: "INVALID_INPUT", message: expect.stringContaining("what its method transaction() gives") };
    expect(await errorOf(pawl.start(echo, 1, { tx }))).toMatchObject(refusal);
    tx.close();
  });

  forEachStore((kind) => {
    test("refuses anything that is not a transaction, in particular a pool, whose statements are outside of the caller's transaction", async () => {
      const { pawl, url } = await connected(kind);
      // The pools open no connection until they are used.
      const pools = [new pg.Pool(), createPool({}), createPromisePool({})];
      for (const tx of pools) {
        const refusal = { code: "INVALID_INPUT", message: expect.stringContaining("not a pool") };
        expect(await errorOf(pawl.start(echo, 1, { tx }))).toMatchObject(refusal);
        expect(await errorOf(pawl.startMany(echo, [1], { tx }))).toMatchObject(refusal);
        expect(await errorOf(pawl.build("graph", (g) => g.node("a", { job: "A" }), { tx }))).toMatchObject(refusal);
      }
      for (const tx of [7, 0, null, true, url, {}, [], () => {}])
        expect(await errorOf(pawl.start(echo, 1, { tx }))).toMatchObject({
          code: "INVALID_INPUT",
          message: expect.stringContaining("a `pg` client"),
        });
      expect((await pawl.runs()).runs).toEqual([]);
      await Promise.all(pools.map((pool) => pool.end()));
    });
  });

  test("does not wait for the warning when the transaction has the only connection", async () => {
    const pawl = await connect("sqlite::memory:", { logger: silent });
    onTestFinished(() => pawl.close());
    const starting = workflow("starting", (ctx) =>
      ctx.transaction("start", async (tx) => (await pawl.start(echo, 1, { tx })).id),
    );
    await pawl.worker({ workflows: [starting] }).start();
    const id = await (await pawl.start(starting)).result({ timeout: "100s" });
    expect(await pawl.run(id).status()).toBe("pending");
  });

  test.skipIf(isLeftOut("postgres"))("accepts a pool client that has begun a transaction", async () => {
    const { pawl, url } = await connected("postgres");
    const pool = new pg.Pool({ connectionString: url });
    const tx = await pool.connect();
    await tx.query("SELECT 1");
    const refusal = { code: "INVALID_INPUT", message: expect.stringContaining("has no open transaction") };
    expect(await errorOf(pawl.start(echo, 1, { tx }))).toMatchObject(refusal);
    await tx.query("BEGIN");
    const run = await pawl.start(echo, 1, { tx });
    await tx.query("COMMIT");
    tx.release();
    await pool.end();
    expect(await run.status()).toBe("pending");
  });
});

interface Connection {
  query(sql: string): Promise<unknown>;
  end(): Promise<void>;
}

async function connectionTo(kind: AnyStoreKind, url: string): Promise<Connection> {
  if (kind === "mysql") return createConnection({ uri: url });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

describe("a start whose idempotency key is in use by another transaction that is still open", () => {
  forEachStore(
    (kind) => {
      test.each(["here", "elsewhere"])(
        "waits for that transaction; other starts do not wait (workers are %s)",
        async (where) => {
          // A new one: InnoDB locks the gap before a key that was deleted a moment ago, and the test inserts that key.
          const { pawl, url } = await connected(kind, emptyDatabase);
          if (where === "here") await pawl.worker({ workflows: [echo] }).start();
          const sql = await connectionTo(kind, url);
          // Close the connection before the database is dropped: dropping it would break the connection with an
          // uncaught error.
          onTestFinished(() => sql.end());
          const query = (text: string) => sql.query(text);
          await query("BEGIN");
          const first = await pawl.start(echo, 0, { tx: sql, idempotencyKey: "k" });

          let isOver = false;
          const second = pawl.start(echo, 0, { idempotencyKey: "k" }).finally(() => (isOver = true));
          second.catch(() => {});
          // Other starts: in the same tick, in later ticks, with keys of their own, and many at once.
          const sameTick = pawl.start(echo, 1);
          const keyed = [2, 3].map((n) => pawl.start(echo, n, { idempotencyKey: `k${n}` }));
          for (const start of keyed) start.catch(() => {});
          const others = [await sameTick, await pawl.start(echo, 4), ...(await pawl.startMany(echo, [5, 6]))];
          others.push(await pawl.start(echo, 7, { idempotencyKey: "k7" }));
          if (where === "here") expect(await Promise.all(others.map((run) => run.result()))).toEqual([1, 4, 5, 6, 7]);
          expect(isOver).toBe(false);

          await query("ROLLBACK");
          expect((await second).id).not.toBe(first.id);
          await Promise.all(keyed);
          expect((await pawl.runs()).runs).toHaveLength(8);
        },
      );
    },
    ["postgres", "mysql"],
  );
});

describe("an idempotency key", () => {
  test("returns the first run again, also after it has ended", async () => {
    const t = await start(echo);
    const first = await t.pawl.start(echo, { a: 1 }, { idempotencyKey: "k" });
    await t.settle();
    const again = await t.pawl.start(echo, { a: 1 }, { idempotencyKey: "k" });
    expect(again.id).toBe(first.id);
    expect(await again.result()).toEqual({ a: 1 });
  });

  test("with a different input throws an error that names the first run, and starts nothing", async () => {
    const t = await start(echo);
    const first = await t.pawl.start(echo, { a: 1 }, { idempotencyKey: "k" });
    const error = await errorOf(t.pawl.start(echo, { a: 2 }, { idempotencyKey: "k" }));
    expect(error).toMatchObject({ code: "INVALID_INPUT", runId: first.id });
    expect(error.message).toContain(first.id);
    expect(await errorOf(t.pawl.start(echo, 1, { delay: "soon" }))).not.toHaveProperty("runId");
    expect((await t.pawl.runs()).runs).toHaveLength(1);
  });

  test("ignores the order of the keys in the input", async () => {
    const t = await start(echo);
    const first = await t.pawl.start(echo, { a: 1, b: { c: 2, d: 3 } }, { idempotencyKey: "k" });
    const again = await t.pawl.start(echo, { b: { d: 3, c: 2 }, a: 1 }, { idempotencyKey: "k" });
    expect(again.id).toBe(first.id);
  });

  test("belongs to its workflow, so another workflow may use the same key", async () => {
    const other = workflow("other", async (_ctx, value: unknown) => value);
    const t = await start(echo, other);
    const a = await t.pawl.start(echo, 1, { idempotencyKey: "k" });
    const b = await t.pawl.start(other, 2, { idempotencyKey: "k" });
    expect(a.id).not.toBe(b.id);
  });
});

describe("a hero", () => {
  test("may have several runs with allowMultiple, and without it one of each workflow", async () => {
    const other = workflow("other", (ctx) => ctx.waitForSignal("go"));
    const t = await start(waiting, other);
    const hero = { type: "User", id: "42" };
    await t.pawl.start(waiting, undefined, { hero });
    await t.pawl.start(waiting, undefined, { hero, allowMultiple: true });
    await t.pawl.start(other, undefined, { hero });
    await t.pawl.start(waiting, undefined, { hero: { type: "Account", id: "42" } });
    expect((await t.pawl.runs({ hero })).runs).toHaveLength(3);
    const [run] = (await t.pawl.runs({ hero: { type: "Account", id: "42" } })).runs;
    expect(run?.hero).toEqual({ type: "Account", id: "42" });
  });

  test.each([{ type: "", id: "1" }, { type: "User", id: "" }, { type: "User", id: 42 }, { type: "User" }])(
    "%o is refused",
    async (hero) => {
      const t = await start(waiting);
      expect(await errorOf(t.pawl.start(waiting, undefined, { hero: hero as never }))).toMatchObject({
        code: "INVALID_INPUT",
      });
      expect((await t.pawl.runs()).runs).toEqual([]);
    },
  );
});

describe("delay and startAt", () => {
  test("start the run at that time, not before", async () => {
    const noted = workflow("noted", async (ctx) => ctx.now().getTime());
    const t = await start(noted);
    const begin = t.clock.read();
    const delayed = await t.pawl.start(noted, undefined, { delay: "3 days" });
    const planned = await t.pawl.start(noted, undefined, { startAt: new Date(begin + 86_400_000) });
    const past = await t.pawl.start(noted, undefined, { startAt: new Date(0) });
    await t.settle();
    expect([await delayed.status(), await planned.status(), await past.status()]).toEqual([
      "pending",
      "pending",
      "completed",
    ]);
    await t.advance(86_400_000 - 1);
    expect(await planned.status()).toBe("pending");
    await t.advance(1);
    expect([await delayed.status(), await planned.status()]).toEqual(["pending", "completed"]);
    expect((await planned.get()).startedAt?.getTime()).toBe(begin + 86_400_000);
    await t.speedrun(delayed);
    expect((await delayed.get()).startedAt?.getTime()).toBe(begin + 3 * 86_400_000);
  });

  test("survive a pause: a resumed run still waits for its start time", async () => {
    const t = await start(echo);
    const run = await t.pawl.start(echo, 1, { delay: "3 days" });
    await run.pause();
    await t.advance("1 day");
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("pending");
    await t.advance("2 days");
    expect(await run.status()).toBe("completed");
  });

  test.each([
    { delay: -1 },
    { delay: "soon" },
    { delay: Number.NaN },
    { startAt: new Date(Number.NaN) },
    { startAt: "tomorrow" },
    { delay: "1h", startAt: new Date() },
    { priority: 1.5 },
    { priority: Number.NaN },
    { tags: [""] },
    { tags: ["x".repeat(201)] },
    { idempotencyKey: "" },
    { idempotencyKey: 5 },
  ])("%o are refused, and nothing is started", async (options) => {
    const t = await start(echo);
    expect(await errorOf(t.pawl.start(echo, 1, options as never))).toMatchObject({ code: "INVALID_INPUT" });
    expect((await t.pawl.runs()).runs).toEqual([]);
  });
});

describe("a schema", () => {
  const order = workflow(
    "order",
    {
      input: z.object({
        id: z.string().trim(),
        count: z.number().int().positive().default(1),
        on: z.coerce.date().optional(),
      }),
      output: z.object({ total: z.number() }),
    },
    async (_ctx, { id, count }) => ({ total: count * id.length }),
  );

  test("refuses a bad input at start with the reason, and starts nothing", async () => {
    const t = await start(order);
    const error = await errorOf(t.pawl.start(order, { id: 5, count: -1 } as never));
    expect(error).toMatchObject({ code: "INVALID_INPUT" });
    expect(error.issues.map((issue: { path: unknown[] }) => issue.path.join("."))).toEqual(["id", "count"]);
    expect(error.message).toMatch(/id.*count/);
    expect((await t.pawl.runs()).runs).toEqual([]);
  });

  test("applies defaults and transforms for the handler; the recorded input is the original one", async () => {
    const t = await start(order);
    const run = await t.pawl.start(order, { id: "  abc ", on: "2030-01-01" });
    expect((await run.get()).input).toEqual({ id: "  abc ", on: "2030-01-01" });
    await t.settle();
    expect(await run.result()).toEqual({ total: 3 });
  });

  test("may be asynchronous", async () => {
    const slow = workflow(
      "slow",
      { input: z.string().refine(async (text) => text === "right") },
      async (_ctx, text) => text,
    );
    const t = await start(slow);
    expect(await errorOf(t.pawl.start(slow, "wrong"))).toMatchObject({ code: "INVALID_INPUT" });
    const run = await t.pawl.start(slow, "right");
    await t.settle();
    expect(await run.result()).toBe("right");
  });

  test("of the output fails a run that returns something else", async () => {
    const wrong = workflow(
      "wrong",
      { output: z.object({ total: z.number() }) },
      async () => ({ total: "many" }) as never,
    );
    const t = await start(wrong);
    const run = await t.pawl.start(wrong, undefined);
    await t.settle();
    expect((await errorOf(run.result())).cause).toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("total"),
    });
  });

  test("refuses the whole startMany when one input is invalid", async () => {
    const t = await start(order);
    expect(await errorOf(t.pawl.startMany(order, [{ id: "a" }, { id: 1 } as never, { id: "c" }]))).toMatchObject({
      code: "INVALID_INPUT",
    });
    expect((await t.pawl.runs()).runs).toEqual([]);
  });

  test("also checks an input that was triggered by name", async () => {
    let executed = 0;
    const strict = workflow("strict", { input: z.object({ n: z.number() }) }, async (_ctx, { n }) => {
      executed += 1;
      return n + 1;
    });
    const t = await start(strict);
    const run = await t.pawl.workflow("strict").trigger({ n: "one" });
    await t.settle();
    expect(executed).toBe(0);
    expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("startMany", () => {
  test("starts one run for each input, in order", async () => {
    const t = await start(echo);
    const runs = await t.pawl.startMany(
      echo,
      Array.from({ length: 1_000 }, (_, n) => n),
      { tags: ["batch"], priority: 3 },
    );
    await t.settle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
    expect((await t.pawl.runs({ tag: "batch", limit: 1_000 })).runs).toHaveLength(1_000);
  });

  test("of no inputs starts nothing", async () => {
    const t = await start(echo);
    expect(await t.pawl.startMany(echo, [])).toEqual([]);
  });

  test("refuses anything that is not a definition", async () => {
    const t = await start(echo);
    expect(await errorOf(t.pawl.startMany("echo" as never, [1]))).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("triggers by name", () => {
  test("start a workflow of another process and return its typed result", async () => {
    const w = await world();
    const { settle } = await w.worker([echo]);
    const run = await w.pawl
      .workflow<{ bucket: string }, { bucket: string }>("echo")
      .trigger({ bucket: "b" }, { tags: ["t"] });
    await settle();
    expect((await run.result()).bucket).toBe("b");
    expect((await w.pawl.workflow("echo").run(run.id).get()).tags).toEqual(["t"]);
  });

  test("throw a WorkflowNotFoundError for a name that was never registered", async () => {
    const w = await world();
    const error = await errorOf(w.pawl.workflow("nobody").trigger(1));
    expect(error).toMatchObject({ code: "WORKFLOW_NOT_FOUND", workflow: "nobody" });
    expect((await w.pawl.runs()).runs).toEqual([]);
  });

  test("may register the name first, which is idempotent and does not overwrite a registration", async () => {
    const w = await world();
    await w.pawl.createWorkflow("echo", { queue: "shared" });
    await w.pawl.createWorkflow("echo");
    await w.pawl.createWorkflow("echo");
    const run = await w.pawl.workflow("echo").trigger("early");
    expect(await run.get()).toMatchObject({ status: "pending", workflow: "echo", queue: "shared" });
    await (await w.worker([echo])).settle();
    expect(await run.result()).toBe("early");
  });

  test("return a warning when no live worker has the workflow", async () => {
    const warnings: string[] = [];
    const w = await world("memory", "memory:", { ...silent, warn: (...args) => void warnings.push(args.join(" ")) });
    await w.pawl.createWorkflow("echo");
    await w.pawl.workflow("echo").trigger(1);
    expect(warnings.join("\n")).toMatch(/echo.*worker/);
  });

  test("start the newest version of the workflow", async () => {
    const versioned = (version: string) => workflow("versioned", { version }, async () => version);
    const w = await world();
    await (await w.worker([versioned("1")])).settle();
    expect((await (await w.pawl.workflow("versioned").trigger(undefined)).get()).version).toBe("1");
    await w.worker([versioned("2")]);
    expect((await (await w.pawl.workflow("versioned").trigger(undefined)).get()).version).toBe("2");
  });

  test("use the tags and the priority of the definition", async () => {
    const tagged = workflow("tagged", { tags: ["billing"], priority: 9, queue: "money" }, async () => 1);
    const w = await world();
    await w.worker([tagged]);
    const run = await w.pawl.workflow("tagged").trigger(undefined);
    expect(await run.get()).toMatchObject({ queue: "money", priority: 9, tags: ["billing"] });
  });
});

describe("definitions", () => {
  test("are discovered in a module, each once, among other exports", async () => {
    const found = discoverWorkflows({
      echo,
      again: echo,
      list: [waiting, 5],
      other: { name: "x" },
      approved: signal("approved"),
      none: null,
    });
    expect(found.map(({ name }) => name)).toEqual(["echo", "waiting"]);
  });

  test.each([
    ["no name", () => workflow("", async () => 1)],
    ["no handler", () => workflow("x", undefined as never)],
    ["a name that is too long", () => workflow("x".repeat(201), async () => 1)],
    ["a timeout that is none", () => workflow("x", { timeout: "never" }, async () => 1)],
    ["a priority that is none", () => workflow("x", { priority: 0.5 }, async () => 1)],
    ["a retry option that is none", () => workflow("x", { retry: { attempts: -1 } }, async () => 1)],
    ["an empty version", () => workflow("x", { version: "" }, async () => 1)],
    ["an unknown option", () => workflow("x", { timeuot: "1h" } as never, async () => 1)],
    ["a schema that is none", () => workflow("x", { input: { parse: () => 1 } as never }, async () => 1)],
  ])("with %s are refused immediately", (_what, make) => {
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });

  test("start() accepts only definitions", async () => {
    const t = await start(echo);
    for (const wrong of ["echo", null, undefined, {}, () => {}]) {
      expect(await errorOf(t.pawl.start(wrong as never, undefined as never))).toMatchObject({ code: "INVALID_INPUT" });
    }
  });

  test("two definitions with the same name in a worker are refused", async () => {
    const t = await start(echo);
    const impostor = workflow("echo", async () => 1);
    expect(() => t.pawl.worker({ workflows: [echo, impostor] })).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });

  test.each([
    { concurrency: 0 },
    { concurrency: Number.NaN },
    { lease: "x" },
    { poll: -1 },
    { name: "" },
    { maxDeliveries: 0 },
    { workflows: [{}] },
    { workflows: undefined },
  ])("a worker with %o is refused", async (options) => {
    const t = await start(echo);
    expect(() => t.pawl.worker({ workflows: [echo], ...options } as never)).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });
});

describe("connect", () => {
  test("without arguments creates ./pawl.db; with an undefined URL it creates nothing", async () => {
    const [home, folder] = [process.cwd(), mkdtempSync(join(tmpdir(), "pawl-connect-"))];
    onTestFinished(() => {
      process.chdir(home);
      rmSync(folder, { recursive: true });
    });
    process.chdir(folder);
    for (const attempt of [() => connect(undefined), () => connect(undefined, { logger: silent })])
      expect(await errorOf(attempt())).toMatchObject({
        code: "INVALID_INPUT",
        message: "connect was given undefined: is the environment variable set?",
      });
    expect(readdirSync(folder)).toEqual([]);
    await (await connect()).close();
    expect(readdirSync(folder)).toContain("pawl.db");
  });

  test.each(["nonsense", "redis://localhost", ""])("to %o is refused with examples", async (url) => {
    expect(await errorOf(connect(url))).toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("postgres://"),
    });
  });

  test("does not show a password in its error", async () => {
    expect((await errorOf(connect("redis://user:secret@host/db"))).message).not.toContain("secret");
  });

  test("does not show a token in its error, wherever the token was given", async () => {
    for (const [url, options] of [
      ["libsql://127.0.0.1:3?tls=0&authToken=sesame", {}],
      ["libsql://127.0.0.1:3?tls=0", { authToken: "sesame" }],
    ] as const) {
      const error = await errorOf(connect(url, options));
      expect(error).toMatchObject({ code: "STORE_ERROR" });
      expect(inspect(error, { depth: 9 })).not.toContain("sesame");
    }
  });

  test("refuses a token for a database that does not take one", async () => {
    expect(await errorOf(connect("postgres://localhost/app", { authToken: "sesame" }))).toMatchObject({
      code: "INVALID_INPUT",
      message: "authToken is for libSQL servers such as libsql://name.turso.io, not for postgres:.",
    });
  });
});

test("a start without a live worker for its workflow is reported on every handle, and once in the log", async () => {
  const warnings: string[] = [];
  const logger = { ...silent, warn: (...args: unknown[]) => void warnings.push(String(args[0])) };
  const w = await world("memory", "memory:", logger);
  const lonely = workflow("lonely", { version: "2" }, async () => 1);
  const warning = 'Workflow "lonely" was started, but no live worker has it in version "2"; the run waits for one.';
  expect((await w.pawl.start(lonely)).warning).toBe(warning);
  expect((await w.pawl.start(lonely)).warning).toBe(warning);
  expect(warnings).toEqual([warning]);
  await w.worker([lonely]);
  expect((await w.pawl.start(lonely)).warning).toBeNull();
});

test.each(["memory:", "sqlite::memory:"])("%s refuses everything after close()", async (url) => {
  const pawl = await connect(url, { logger: silent });
  await pawl.close();
  expect(await errorOf(pawl.start(echo, 1))).toMatchObject({
    code: "STORE_ERROR",
    message: expect.stringContaining("closed"),
  });
  expect(await errorOf(pawl.worker({ workflows: [echo] }).start())).toMatchObject({ code: "STORE_ERROR" });
});

test("the error for an invalid input lists every problem once", async () => {
  const order = workflow("order", { input: z.object({ sku: z.string(), cents: z.number() }) }, async () => {});
  const t = await start(order);
  const error = await errorOf(t.pawl.start(order, { sku: 7, cents: "1" } as never));
  expect(error.message).toBe(
    'The input of workflow "order" is not valid: sku: Invalid input: expected string, received number; cents: Invalid input: expected number, received string',
  );
});
