/** `pawl_start`: runs that programs start with SQL, in their own transactions. */
import { connect, type Pawl, Workflow, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { refusal, refusalOf, type SqlCaller, sqlCaller, sqlKinds } from "./sql-caller.js";

const echo = workflow("echo", async (_ctx, value: unknown) => value ?? "nothing");
const important = workflow("important", { priority: 7, tags: ["a", 'b"\\'], queue: "vip" }, async () => {});
const waiting = workflow("waiting", async (ctx) => ctx.waitForSignal("go"));

class Onboarding extends Workflow<{ readonly id: string }> {
  static readonly heroType = "User";
  static readonly loadHero = async (id: string) => ({ id });
  static {
    this.step("wait", { wait: "1 hour" }, () => {});
  }
}

class Reminder extends Workflow<{ readonly id: string }> {
  static readonly heroType = "User";
  static readonly loadHero = async (id: string) => ({ id });
  static {
    this.options({ allowMultiple: true });
    this.step("wait", { wait: "1 hour" }, () => {});
  }
}

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;
  let caller: SqlCaller;

  beforeAll(async () => {
    database = await testDatabase(kind);
    pawl = await connect(database.url, { logger: silent });
    await pawl.worker({ workflows: [echo, important, waiting, Onboarding, Reminder], lease: "1 minute" }).start();
  });
  afterAll(async () => {
    await pawl.close();
    await database.drop();
  });
  const open = async () => {
    caller = await sqlCaller(kind, database.url);
    return caller;
  };
  /** The worker may be executing the run, and ends it then. */
  const cancel = async (...ids: readonly string[]) => {
    for (const id of ids) {
      await pawl.run(id).cancel();
      await until(async () => (await pawl.run(id).status()) === "canceled");
    }
  };
  /** Checked at the end of each test: a run that SQL has started is like any other. */
  const soundAtTheEnd = () =>
    onTestFinished(async () => {
      expect((await pawl.verify()).differences).toEqual([]);
    });

  test("a run is started, executed and has a result", async () => {
    soundAtTheEnd();
    const sql = await open();
    const id = await sql.start("echo", '{"sku": "A-1", "cents": 4200}');
    const run = pawl.run(id);
    expect(await run.result()).toEqual({ sku: "A-1", cents: 4200 });
    expect(await run.get()).toMatchObject({ workflow: "echo", status: "completed", hero: null, tags: [], priority: 0 });
  });

  test("its id is a UUID of version 7 with the time of the start, and no two are the same", async () => {
    const sql = await open();
    const ids = [];
    const before = Date.now();
    for (let n = 0; n < 20; n += 1) ids.push(await sql.start("echo", "1"));
    const after = Date.now();
    expect(new Set(ids).size).toBe(20);
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      const at = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
      // The server is on this machine, but its clock may be read in another unit.
      expect(at).toBeGreaterThanOrEqual(before - 5);
      expect(at).toBeLessThanOrEqual(after + 5);
      expect((await pawl.run(id).get()).createdAt.getTime()).toBe(at);
    }
  });

  test("a start without input has the input undefined, and NULL options are no options", async () => {
    const sql = await open();
    const run = pawl.run(await sql.start("echo", null, null));
    expect(await run.result()).toBe("nothing");
    expect((await run.get()).input).toBeUndefined();
  });

  test("the rows are those that the client writes", async () => {
    const sql = await open();
    const options = {
      idempotencyKey: "same row",
      hero: { type: "User", id: 'é "7"\\' },
      delay: 3_600_000,
      priority: -3,
      tags: ["x", 'y"'],
    };
    const byClient = await pawl.workflow("important").trigger({ n: 1, text: 'a "b"' } as never, options);
    const id = await sql.start("important", '{"n":1,"text":"a \\"b\\""}', {
      ...options,
      idempotencyKey: "other row",
      hero: { type: "User", id: "8" },
    });
    const rowsOf = async (run: string) => {
      const [runRow] = await sql.query(`SELECT * FROM pawl_runs WHERE id = '${run}'`);
      const [taskRow] = await sql.query(`SELECT * FROM pawl_tasks WHERE run_id = '${run}'`);
      const text = Object.fromEntries(
        Object.entries({ ...runRow, ...taskRow }).map(([name, value]) => [name, value === null ? null : String(value)]),
      );
      return { ...text, delay: Number(text.due_at) - Number(text.created_at) };
    };
    const differing = { id: "", run_id: "", created_at: "", due_at: "", start_key: "", hero_id: "", hero_key: "" };
    const [clientRow, sqlRow] = [await rowsOf(byClient.id), await rowsOf(id)];
    expect({ ...sqlRow, ...differing }).toEqual({ ...clientRow, ...differing });
    expect(sqlRow).toMatchObject({
      delay: 3_600_000,
      queue: "vip",
      tags: JSON.stringify(["a", 'b"\\', "x", 'y"']),
      start_key: "other row",
      hero_key: '["important","User","8"]',
    });
    expect(clientRow).toMatchObject({ hero_key: JSON.stringify(["important", "User", 'é "7"\\']) });
    // The same key by SQL is the client's run.
    expect(await sql.start("important", '{"text":"a \\"b\\"","n":1}', options)).toBe(byClient.id);
    await cancel(id, byClient.id);
  });

  test("defaults come from the registration", async () => {
    const sql = await open();
    const run = pawl.run(await sql.start("important", "null", { priority: null, hero: null, allowMultiple: null }));
    expect(await run.get()).toMatchObject({ priority: 7, tags: ["a", 'b"\\'], queue: "vip", hero: null });
    expect((await pawl.runs({ tag: 'b"\\' })).runs.map((info) => info.id)).toContain(run.id);
    const tagged = await sql.start("important", "null", { tags: [], priority: 0 });
    expect(await pawl.run(tagged).get()).toMatchObject({ priority: 0, tags: ["a", 'b"\\'] });
  });

  test("a workflow that was only registered by name can be started", async () => {
    const sql = await open();
    await pawl.createWorkflow("only a name", { queue: "q" });
    const run = pawl.run(await sql.start("only a name", "1"));
    expect(await run.get()).toMatchObject({ status: "pending", queue: "q", priority: 0, tags: [] });
    await cancel(run.id);
  });

  describe("in the caller's transaction", () => {
    test("the run exists when the caller commits, together with a row of the caller's own", async () => {
      soundAtTheEnd();
      const sql = await open();
      await sql.query("CREATE TABLE orders (sku VARCHAR(20))");
      await sql.query("START TRANSACTION");
      await sql.query("INSERT INTO orders VALUES ('A-1')");
      const id = await sql.start("echo", '"A-1"');
      expect(await refusedWith(pawl.run(id).get())).toBe("RUN_NOT_FOUND");
      await sql.query("COMMIT");
      expect(await pawl.run(id).result()).toBe("A-1");
      expect(await sql.query("SELECT * FROM orders")).toEqual([{ sku: "A-1" }]);
    });

    test("nothing is left when the caller rolls back", async () => {
      soundAtTheEnd();
      const sql = await open();
      await sql.query("START TRANSACTION");
      const options = { idempotencyKey: "rolled back", hero: { type: "User", id: "rolled back" } };
      const id = await sql.start("echo", "1", options);
      await sql.query("ROLLBACK");
      expect(await refusedWith(pawl.run(id).get())).toBe("RUN_NOT_FOUND");
      expect(await sql.query(`SELECT * FROM pawl_tasks WHERE run_id = '${id}'`)).toEqual([]);
      // Its keys are free.
      const again = await sql.start("echo", "2", options);
      expect(await pawl.run(again).result()).toBe(2);
    });

    test("a refused start leaves the transaction as it was, where the database can continue one", async () => {
      const sql = await open();
      await sql.query("CREATE TABLE notes (text VARCHAR(20))");
      await sql.query("START TRANSACTION");
      await sql.query("INSERT INTO notes VALUES ('kept')");
      await sql.query("SAVEPOINT mine");
      expect((await refusalOf(sql.start("unknown"))).code).toBe("WORKFLOW_NOT_FOUND");
      // PostgreSQL continues after an error only from a savepoint.
      await sql.query("ROLLBACK TO SAVEPOINT mine");
      await sql.query("COMMIT");
      expect(await sql.query("SELECT * FROM notes")).toEqual([{ text: "kept" }]);
    });

    if (kind === "mysql") {
      // On PostgreSQL a function is one statement, which is written as a whole or not at all.
      test("a start that fails halfway leaves nothing, with and without a transaction of the caller", async () => {
        soundAtTheEnd();
        const sql = await open();
        await pawl.createWorkflow("half");
        await sql.query(`CREATE TRIGGER refuse_half BEFORE INSERT ON pawl_tasks FOR EACH ROW
          IF NEW.workflow = 'half' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'halfway'; END IF`);
        onTestFinished(async () => void (await sql.query("DROP TRIGGER refuse_half")));
        const runs = () => sql.query("SELECT id FROM pawl_runs WHERE workflow = 'half'");
        expect((await refusalOf(sql.start("half"))).message).toBe("halfway");
        expect(await runs()).toEqual([]);
        await sql.query("START TRANSACTION");
        const id = await sql.start("echo", '"whole"');
        expect((await refusalOf(sql.start("half"))).message).toBe("halfway");
        await sql.query("COMMIT");
        expect(await runs()).toEqual([]);
        expect(await pawl.run(id).result()).toBe("whole");
      });
    }

    test("a trigger can start runs, and its statement is rolled back with them", async () => {
      soundAtTheEnd();
      const sql = await open();
      await sql.query("CREATE TABLE parcels (id INT)");
      if (kind === "postgres") {
        await sql.query(`CREATE FUNCTION start_parcel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          PERFORM pawl_start('echo', to_jsonb(NEW), jsonb_build_object('idempotencyKey', 'parcel ' || NEW.id)); RETURN NEW; END $$`);
        await sql.query(
          "CREATE TRIGGER start_parcel AFTER INSERT ON parcels FOR EACH ROW EXECUTE FUNCTION start_parcel()",
        );
      } else {
        await sql.query(`CREATE TRIGGER start_parcel AFTER INSERT ON parcels FOR EACH ROW CALL pawl_start(
          'echo', JSON_OBJECT('id', NEW.id), JSON_OBJECT('idempotencyKey', CONCAT('parcel ', NEW.id)), @run_id)`);
      }
      await sql.query("INSERT INTO parcels VALUES (1), (2)");
      for (const id of [1, 2]) {
        const run = await pawl.find(echo, { idempotencyKey: `parcel ${id}` });
        expect(await run?.result()).toEqual({ id });
      }
      await sql.query("START TRANSACTION");
      await sql.query("INSERT INTO parcels VALUES (3)");
      await sql.query("ROLLBACK");
      expect(await pawl.find(echo, { idempotencyKey: "parcel 3" })).toBeNull();
    });
  });

  describe("an idempotency key", () => {
    test("returns the run that is there, also when it has ended, whoever started it", async () => {
      const sql = await open();
      const first = await sql.start("echo", '{"a":1,"b":[true,null]}', { idempotencyKey: "k1" });
      await pawl.run(first).result();
      expect(await sql.start("echo", '{ "b": [true, null], "a": 1 }', { idempotencyKey: "k1" })).toBe(first);
      const again = await pawl.start(echo, { b: [true, null], a: 1 }, { idempotencyKey: "k1" });
      expect([again.id, again.created]).toEqual([first, false]);

      const input = { text: "é/\u{1f600}\n", n: 1.5, $pawl: { $pawl: 1 } };
      const byClient = await pawl.start(echo, input, { idempotencyKey: "k2" });
      expect(await sql.start("echo", JSON.stringify(input), { idempotencyKey: "k2" })).toBe(byClient.id);
      const escaped = '{"$pawl":{"$\\u0070awl":1.0},"n":15e-1,"text":"\\u00e9\\/\\ud83d\\ude00\\u000a"}';
      expect(await sql.start("echo", escaped, { idempotencyKey: "k2" })).toBe(byClient.id);
    });

    test("refuses another input, and names the run", async () => {
      const sql = await open();
      const inputs: unknown[] = [
        { a: 1 },
        new Date(0),
        "a\u0000b",
        "\ud800",
        undefined,
        { $pawl: "Date", v: "1970-01-01T00:00:00.000Z" },
        [1],
        null,
      ];
      for (const [index, input] of inputs.entries()) {
        const idempotencyKey = `another input ${index}`;
        const run = await pawl.start(echo, input, { idempotencyKey });
        for (const other of ['{"a":2}', '"1970-01-01T00:00:00.000Z"', '"ab"', "0"])
          expect(await refusalOf(sql.start("echo", other, { idempotencyKey }))).toEqual(
            refusal(
              "INVALID_INPUT",
              `Workflow "echo" was already started with the idempotency key "${idempotencyKey}" and another input, as run ${run.id}; use another key for another start.`,
            ),
          );
      }
    });

    test("is another key for another workflow, and is compared byte for byte", async () => {
      const sql = await open();
      const first = await sql.start("echo", "1", { idempotencyKey: "Key é" });
      for (const [name, key] of [
        ["waiting", "Key é"],
        ["echo", "key é"],
        ["echo", "Key e"],
        ["echo", "Key é \u{1f600}"],
      ] as const) {
        const other = await sql.start(name, "2", { idempotencyKey: key });
        expect(other).not.toBe(first);
        expect(await pawl.find(name, { idempotencyKey: key })).toMatchObject({ id: other });
      }
    });

    test("gives one run for 20 concurrent starts", async () => {
      soundAtTheEnd();
      const callers = await Promise.all(Array.from({ length: 20 }, () => sqlCaller(kind, database.url)));
      const ids = await Promise.all(callers.map((one) => one.start("echo", '"once"', { idempotencyKey: "once" })));
      expect(new Set(ids).size).toBe(1);
      expect(await pawl.run(ids[0] as string).result()).toBe("once");
      expect(
        (await pawl.runs({ workflow: echo, limit: 1000 })).runs.filter(({ input }) => input === "once"),
      ).toHaveLength(1);
    });

    test("waits for an open transaction with the same key, whether it commits or not", async () => {
      const [first, second, third] = [await open(), await open(), await open()] as [SqlCaller, SqlCaller, SqlCaller];
      const options = { idempotencyKey: "contended" };
      await first.query("START TRANSACTION");
      const rolledBack = await first.start("echo", '"x"', options);
      const waitingStart = second.start("echo", '"x"', options);
      await until(async () => (await lockWaits(third)) > 0);
      await first.query("ROLLBACK");
      const id = await waitingStart;
      expect(id).not.toBe(rolledBack);
      expect(await third.start("echo", '"x"', options)).toBe(id);
    });
  });

  /** How many sessions wait for a lock: of this database, or (MySQL has no such figure) of this server. */
  async function lockWaits(sql: SqlCaller): Promise<number> {
    const [row] = await sql.query(
      kind === "postgres"
        ? "SELECT count(*)::int AS \"Value\" FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        : "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
    );
    return Number(row?.Value);
  }

  describe("a hero", () => {
    const hero = (id: string) => ({ hero: { type: "User", id } });

    test("has one active run of a workflow, and the refusal names it", async () => {
      const sql = await open();
      const id = await sql.start("Onboarding", "null", hero("1"));
      expect((await pawl.run(id).get()).hero).toEqual({ type: "User", id: "1" });
      const refused = `User 1 already has an active run of workflow "Onboarding": ${id}. Wait for it, cancel it, or start with allowMultiple`;
      expect(await refusalOf(sql.start("Onboarding", "null", hero("1")))).toEqual(
        refusal("ALREADY_ACTIVE", `${refused}.`),
      );
      await expect(pawl.start(Onboarding, undefined, hero("1") as never)).rejects.toThrow(`${refused} or onConflict.`);
      const second = await sql.start("Onboarding", "null", { ...hero("1"), allowMultiple: true });
      expect(second).not.toBe(id);
      await cancel(id);
      const third = await sql.start("Onboarding", "null", hero("1"));
      await cancel(second, third);
    });

    test("may have several where its class says so", async () => {
      const sql = await open();
      const ids = [await sql.start("Reminder", "null", hero("1")), await sql.start("Reminder", "null", hero("1"))];
      expect(new Set(ids).size).toBe(2);
      const only = await sql.start("Reminder", "null", { ...hero("1"), allowMultiple: false });
      expect((await refusalOf(sql.start("Reminder", "null", { ...hero("1"), allowMultiple: false }))).code).toBe(
        "ALREADY_ACTIVE",
      );
      await cancel(...ids, only);
    });

    test("with an idempotency key is found again", async () => {
      const sql = await open();
      const options = { ...hero("2"), idempotencyKey: "hero 2" };
      const id = await sql.start("Onboarding", "null", options);
      expect(await sql.start("Onboarding", "null", options)).toBe(id);
      expect((await refusalOf(sql.start("Onboarding", "null", { ...options, idempotencyKey: "hero 2b" }))).code).toBe(
        "ALREADY_ACTIVE",
      );
      await cancel(id);
    });

    test("has one run after 20 concurrent starts", async () => {
      const callers = await Promise.all(Array.from({ length: 20 }, () => sqlCaller(kind, database.url)));
      const outcomes = await Promise.allSettled(callers.map((one) => one.start("Onboarding", "null", hero("3"))));
      const started = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      expect(started).toHaveLength(1);
      for (const one of outcomes)
        if (one.status === "rejected") expect(one.reason.message).toContain(`"Onboarding": ${started[0]}.`);
      await cancel(started[0] as string);
    });
  });

  describe("delay and startAt", () => {
    const dueAt = async (sql: SqlCaller, id: string) => {
      const [row] = await sql.query(
        `SELECT t.due_at, t.state, r.created_at FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE r.id = '${id}'`,
      );
      return { due: Number(row?.due_at), state: Number(row?.state), created: Number(row?.created_at) };
    };

    test("a delay is a number of milliseconds, rounded", async () => {
      const sql = await open();
      for (const [delay, ms] of [
        [86_400_000, 86_400_000],
        [60_000.5, 60_001],
        [1e12, 1e12],
      ] as const) {
        const id = await sql.start("echo", "1", { delay });
        const { due, state, created } = await dueAt(sql, id);
        expect([due - created, state]).toEqual([ms, 0]);
        expect(await pawl.run(id).status()).toBe("pending");
        await cancel(id);
      }
      expect(await pawl.run(await sql.start("echo", "1", { delay: 0 })).result()).toBe(1);
    });

    test("a short delay passes, and the run is executed not before", async () => {
      const sql = await open();
      const run = pawl.run(await sql.start("echo", "1", { delay: 300 }));
      expect(await run.result()).toBe(1);
      const { createdAt, startedAt } = await run.get();
      expect((startedAt as Date).getTime() - createdAt.getTime()).toBeGreaterThanOrEqual(300);
    });

    test.each([
      ['"2030-01-31T09:00:00Z"', "2030-01-31T09:00:00.000Z"],
      ['"2030-01-31T09:00:00.123Z"', "2030-01-31T09:00:00.123Z"],
      ['"2030-01-31T09:00:00.123456789+02:00"', "2030-01-31T07:00:00.123Z"],
      ['"2030-01-31 09:00:00.5-0530"', "2030-01-31T14:30:00.500Z"],
      ['"2030-01-31 09:00+02"', "2030-01-31T07:00:00.000Z"],
      ["1895994000000", "2030-01-30T09:00:00.000Z"],
      ["1895994000000.9", "2030-01-30T09:00:00.000Z"],
    ])("startAt %s is an instant, whatever the time zone of the session", async (startAt, expected) => {
      const sql = await open();
      await sql.query(kind === "postgres" ? "SET TimeZone = 'America/New_York'" : "SET time_zone = '-05:00'");
      const id = await sql.start("echo", "1", `{"startAt": ${startAt}}`);
      const { due, state } = await dueAt(sql, id);
      expect([new Date(due).toISOString(), state]).toEqual([expected, 0]);
      await cancel(id);
    });

    test("an instant that has passed starts the run at once", async () => {
      const sql = await open();
      for (const startAt of ["1969-12-31T23:59:59.9999Z", "2001-01-01T00:00:00+14:00", -5.5, 0])
        expect(await pawl.run(await sql.start("echo", "1", { startAt })).result()).toBe(1);
    });
  });

  test("runs with a higher priority are claimed first", async () => {
    const sql = await open();
    const order: unknown[] = [];
    const ranked = workflow("ranked", async (_ctx, n: number) => void order.push(n));
    await pawl.createWorkflow("ranked");
    const ids = [];
    for (const priority of [0, 5, -1, 1_000_000, -1_000_000, 1])
      ids.push(await sql.start("ranked", String(priority), { priority }));
    const worker = pawl.worker({ workflows: [ranked], concurrency: 1, lease: "1 minute" });
    await worker.start();
    onTestFinished(() => worker.stop());
    for (const id of ids) await pawl.run(id).result();
    expect(order).toEqual([1_000_000, 5, 1, 0, -1, -1_000_000]);
  });

  test("who starts a run, and why, is stored as by the client", async () => {
    const sql = await open();
    for (const options of [
      { by: 'ada "l" \\' },
      { reason: 'a\n"b"\u0001 é' },
      { by: "ada", reason: null },
      { by: "ada", reason: "why" },
      { reason: "x".repeat(4_000) },
      {},
    ]) {
      const byClient = await pawl.workflow("echo").trigger(1 as never, options as object);
      const bySql = pawl.run(await sql.start("echo", "1", options));
      expect((await bySql.get()).startedBy).toEqual((await byClient.get()).startedBy);
    }
    const long = pawl.run(await sql.start("echo", "1", { reason: "x".repeat(4_001) }));
    expect((await long.get()).startedBy).toEqual({ by: null, reason: `${"x".repeat(4_000)}...` });
  });

  const refusedWith = (call: Promise<unknown>) =>
    call.then(
      () => "not refused",
      (error: { code: string }) => error.code,
    );
}, sqlKinds);
