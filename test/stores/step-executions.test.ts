/** The view pawl_step_executions matches `run.executions()`, whatever the logs contain. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { toFailure } from "../../src/core/encoding/error-record.js";
import type { NewEvent } from "../../src/core/run/event.js";
import { newEvent } from "../../src/core/run/event.js";
import { keepOwner } from "../../src/core/run/transition.js";
import type { Fence, NextTaskState, Store } from "../../src/store/contract/store.js";
import { batch, finish, newRuns, transition, workerInfo } from "../../src/testing/store-suite/builders.js";
import { SeededRandom } from "../../src/testing/store-suite/seeded-random.js";
import {
  emptyDatabase,
  forEachStore,
  isLeftOut,
  openStore,
  type StoreKind,
  type TestDatabase,
} from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { expectSameAsLogs, sqlStores, viewRows } from "../support/view-rows.js";
import { randomLog } from "./random-logs.js";

/** A database with a worker that owns the runs and appends given events to their logs. */
class LogWriter {
  now = 1_700_000_000_000;
  readonly #database: TestDatabase;
  readonly #lengths = new Map<string, number>();
  readonly store: Store;
  readonly sql: RawSql;
  readonly #fence: Fence;

  static async on(kind: StoreKind, prepare: (sql: RawSql) => Promise<unknown> = async () => {}): Promise<LogWriter> {
    const database = await emptyDatabase(kind);
    const sql = await rawSql(database.url);
    await prepare(sql);
    const writer: { current?: LogWriter } = {};
    const store = await openStore(kind, database.url, { clock: () => writer.current?.now ?? 0 });
    await store.migrate();
    writer.current = new LogWriter(database, store, sql, await store.registerWorker(workerInfo()));
    return writer.current;
  }

  private constructor(database: TestDatabase, store: Store, sql: RawSql, fence: Fence) {
    this.#database = database;
    this.store = store;
    this.sql = sql;
    this.#fence = fence;
  }

  async begin(howMany: number): Promise<string[]> {
    const runs = newRuns(howMany, { due: { kind: "owned" }, heroType: "User", heroId: "Zoë" });
    await this.store.commit(batch(this.#fence, [], runs));
    return runs.map(({ id }) => id);
  }

  /** One commit. */
  async append(entries: readonly { id: string; events: readonly NewEvent[]; next?: NextTaskState }[]): Promise<void> {
    const transitions = entries.map(({ id, events, next = keepOwner }) => {
      const afterSeq = this.#lengths.get(id) ?? 0;
      this.#lengths.set(id, afterSeq + events.length);
      return transition(id, { afterSeq, events, next });
    });
    expect(await this.store.commit(batch(this.#fence, transitions))).toMatchObject({ kind: "committed" });
  }

  async close(): Promise<void> {
    await this.sql.close();
    await this.store.close();
    await this.#database.drop();
  }
}

const failed = (message: string) =>
  newEvent(
    "step.failed",
    { node: "work", attempt: 1, outcome: "failed_by_exception" },
    { error: toFailure(new Error(message)) },
  );

forEachStore((kind) => {
  let writer: LogWriter;
  beforeAll(async () => {
    writer = await LogWriter.on(kind);
  });
  afterAll(() => writer.close());

  describe("250 random logs", () => {
    let ids: string[];

    beforeAll(async () => {
      ids = await writer.begin(250);
      const logs = ids.map((id, seed) => ({ id, ...randomLog(seed) }));
      const random = new SeededRandom(1);
      for (let round = 0; ; round += 1) {
        const entries = logs.flatMap(({ id, commits, end }) => {
          if (round < commits.length) return { id, events: commits[round] as NewEvent[] };
          return round === commits.length && end !== null ? { id, events: [], next: finish(end) } : [];
        });
        if (entries.length === 0) break;
        // Sometimes the clock goes back.
        writer.now += random.pick([0, 1, 40, 1000, -30]) as number;
        await writer.append(entries);
      }
    });

    test("the view matches the logs", async () => {
      await expectSameAsLogs(writer.store, ids, await viewRows(writer.sql));
    });

    test("the view matches the logs when it is filtered by run", async () => {
      for (const id of ids.filter((_, index) => index % 25 === 0)) {
        const shown = await viewRows(writer.sql, `WHERE run_id = '${id}'`);
        expect([...shown.keys()].filter((other) => other !== id)).toEqual([]);
        await expectSameAsLogs(writer.store, [id], shown);
      }
    });

    // The plans of PostgreSQL are tested in src/store/postgres/plans.test.ts.
    if (kind === "sqlite" || kind === "mysql") {
      test("a query for one run searches for the events of that run and reads no others", async () => {
        const reads = await readsOfEvents[kind](writer.sql, ids[0] as string);
        expect(reads.length).toBeGreaterThan(0);
        expect(reads.filter(({ isSearch }) => !isSearch)).toEqual([]);
      });
    }
  });

  test("a step with thousands of executions is shown", async () => {
    const [id] = (await writer.begin(1)) as [string];
    const again = (attempt: number) =>
      newEvent("step.reattempted", { node: "loop", attempt, outcome: "continued" }, { waitMs: 5 });
    for (let commit = 0; commit < 8; commit += 1) {
      await writer.append([{ id, events: Array.from({ length: 1_000 }, (_, n) => again(commit * 1_000 + n + 1)) }]);
    }
    const shown = await viewRows(writer.sql, `WHERE run_id = '${id}'`);
    expect(shown.get(id)).toHaveLength(8_001);
    await expectSameAsLogs(writer.store, [id], shown);
  });

  test.each([
    ["U+0000", "a\0b\0\0c", "a\ufffdb\ufffd\ufffdc"],
    ["half of a surrogate pair", "a\ud800b\udfffc", "a\ufffdb\ufffdc"],
    ["halves in the wrong order", "\udc00\ud83d!", "\ufffd\ufffd!"],
    ["what looks like an escape", String.raw`\u0000 \\u0000 \\\ud800 \ud83d\ude00`, null],
    ["quotes, backslashes, controls", `"'\\\`$1 %s \n\t\r\x01\x7f\u2028`, null],
    ["emoji and other scripts", "😀 ไทย עברית e\u0301", null],
    ["nothing", "", null],
    ["as much as is kept", `${"long ".repeat(1_600)}end`, null],
  ])("the message of an error: %s", async (_what, message, shown) => {
    const ids = await writer.begin(2);
    const [alone, among] = ids as [string, string];
    const others = Array.from({ length: 3 }, (_, n) => newEvent("step.completed", { node: `other ${n}`, attempt: 1 }));
    await writer.append([
      { id: alone, events: [failed(message)] },
      { id: among, events: [...others, failed(message)] },
    ]);
    for (const id of ids) {
      const [row] = (await viewRows(writer.sql, `WHERE run_id = '${id}' AND step = 'work'`)).get(id) ?? [];
      expect(row).toMatchObject({ state: "failed", finished_at: writer.now });
      expect(plain(row?.error_message)).toBe(plain(shown ?? message));
    }
  });

  test("a damaged row hides only the events that it holds", async () => {
    const ids = await writer.begin(4);
    const [damagedBatch, damagedData, noTuples, sound] = ids as [string, string, string, string];
    const done = (node: string) => newEvent("step.completed", { node, attempt: 1, outcome: "success" }, { ms: 5 });
    await writer.append(ids.map((id) => ({ id, events: [done("one")] })));
    await writer.append(ids.map((id) => ({ id, events: [done("two"), done("three")] })));
    await writer.append(ids.map((id) => ({ id, events: [done("four")] })));
    const damage = (id: string, seq: number, data: string) =>
      writer.sql.query(`UPDATE pawl_events SET data = '${data}' WHERE run_id = '${id}' AND seq = ${seq}`);
    await damage(damagedBatch, 2, '[["step.completed","two",1');
    await damage(noTuples, 2, '[1,null,"x"]');
    await damage(damagedData, 1, '{"ms":');
    await damage(damagedData, 4, '"no object"');
    // The query covers all runs, including those of the previous tests with unusual messages.
    const shown = await viewRows(writer.sql);
    const stepsOf = (id: string) =>
      shown
        .get(id)
        ?.map(({ step }) => step)
        .sort();
    expect(stepsOf(damagedBatch)).toEqual(["four", "one"]);
    expect(stepsOf(noTuples)).toEqual(["four", "one"]);
    expect(stepsOf(damagedData)).toEqual(["four", "one", "three", "two"]);
    await expectSameAsLogs(writer.store, [damagedBatch, noTuples, sound], shown);
  });
}, sqlStores);

interface Read {
  readonly isSearch: boolean;
  readonly detail: string;
}

/** How the database would read pawl_events to answer for one run. */
const readsOfEvents = {
  sqlite: async (sql: RawSql, id: string): Promise<Read[]> => {
    const plan = await sql.query(`EXPLAIN QUERY PLAN SELECT * FROM pawl_step_executions WHERE run_id = '${id}'`);
    const details = plan
      .map(({ detail }) => String(detail))
      .filter((detail) => /^(SCAN|SEARCH) (e|pawl_events)\b/.test(detail));
    return details.map((detail) => ({ isSearch: /^SEARCH .*\(run_id=\?/.test(detail), detail }));
  },
  mysql: async (sql: RawSql, id: string): Promise<Read[]> => {
    const plan = await sql.query(`EXPLAIN SELECT * FROM pawl_step_executions WHERE run_id = '${id}'`);
    const reads = plan.filter(({ table }) => table === "e");
    return reads.map((row) => ({
      isSearch: row.key === "PRIMARY" && row.type !== "index",
      detail: JSON.stringify(row),
    }));
  },
};

/** SQLite passes unpaired surrogates on as bytes, which its drivers show as one U+FFFD or more. */
const plain = (text: unknown) => (typeof text === "string" ? text.replace(/\ufffd+/g, "\ufffd") : text);

describe.skipIf(isLeftOut("postgres"))("postgres, in a schema of its own", () => {
  test("the view exists and shows the runs of that schema", async () => {
    const database = await emptyDatabase("postgres");
    const schema = `we"ird; $$ Schema`;
    const there = await openStore("postgres", database.url, { schema });
    const here = await openStore("postgres", database.url);
    const sql = await rawSql(database.url);
    onTestFinished(async () => {
      await Promise.all([there.close(), here.close(), sql.close()]);
      await database.drop();
    });
    await Promise.all([there.migrate(), here.migrate()]);
    const fence = await there.registerWorker(workerInfo());
    const [run] = newRuns(1, { due: { kind: "owned" } });
    if (run === undefined) throw new Error("There is no run.");
    await there.commit(batch(fence, [], [run]));
    await there.commit(batch(fence, [transition(run.id, { events: [failed("boom")] })]));
    expect(await sql.query(`SELECT run_id, error_message FROM "we""ird; $$ Schema".pawl_step_executions`)).toEqual([
      { run_id: run.id, error_message: "boom" },
    ]);
    expect(await sql.query("SELECT * FROM pawl_step_executions")).toEqual([]);
  });
});

describe.skipIf(isLeftOut("mysql"))("mysql, whatever the database and the reader are set to", () => {
  test("names and messages are shown unchanged", async () => {
    const writer = await LogWriter.on("mysql", async (sql) => {
      const [row] = await sql.query("SELECT DATABASE() AS name");
      await sql.query(`ALTER DATABASE ${row?.name} CHARACTER SET latin1 COLLATE latin1_swedish_ci`);
    });
    onTestFinished(() => writer.close());
    const ids = await writer.begin(1);
    const named = (node: string, message: string): NewEvent => ({ ...failed(message), node });
    const events = [named("größe", "boom"), named("Größe", "\\ 😀"), named("GRÖSSE", "ไทย")];
    await writer.append([{ id: ids[0] as string, events }]);
    await expectSameAsLogs(writer.store, ids, await viewRows(writer.sql));
    await writer.sql.query("SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES', NAMES latin1");
    const [row] = await writer.sql.query("SELECT COUNT(*) AS n FROM pawl_step_executions WHERE error_message = 'boom'");
    expect(row?.n).toBe(1);
  });

  test("every column is text except run_id, which is binary so that a query for one run can use the index", async () => {
    const writer = await LogWriter.on("mysql");
    onTestFinished(() => writer.close());
    const columns = await writer.sql.query(
      `SELECT column_name AS name, data_type AS type FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'pawl_step_executions' ORDER BY ordinal_position`,
    );
    expect(columns.filter(({ type }) => /binary|blob/.test(String(type))).map(({ name }) => name)).toEqual(["run_id"]);
    expect(columns.map(({ name }) => name)).toContain("hero_id");
  });
});
