/** `pawl_signal`: signals that programs send with SQL, in their own transactions. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Pawl, type RunHandle, workflow } from "pawl";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WorkerProcess } from "../processes/worker-process.js";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { killAllProcesses } from "../support/library-process.js";
import { logOf } from "../support/run-checks.js";
import { mysqlTable, postgresTable } from "../support/user-table.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";
import { refusal, refusalOf, type SqlCaller, sqlCaller, sqlKinds } from "./sql-caller.js";

const approval = workflow("approval", async (ctx) => ({ payload: await ctx.waitForSignal<unknown>("approved") }));
const counter = workflow("counter", async (ctx, total: number) => {
  const payloads: unknown[] = [];
  while (payloads.length < total) payloads.push(await ctx.waitForSignal("more"));
  return payloads;
});
/** It has several events in one commit, so that its signals are in a row with others. */
const impatient = workflow("impatient", async (ctx) => {
  await ctx.waitForSignal("first");
  await ctx.waitForSignal("second");
});

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;
  let sql: SqlCaller;

  beforeAll(async () => {
    database = await testDatabase(kind);
    pawl = await connect(database.url, { logger: silent });
    await pawl.worker({ workflows: [approval, counter, impatient], lease: "1 minute" }).start();
    await pawl.createWorkflow("without worker");
  });
  afterAll(async () => {
    await pawl.close();
    await database.drop();
  });
  beforeEach(async () => {
    sql = await sqlCaller(kind, database.url);
  });
  afterEach(killAllProcesses);
  const parked = async <Run extends RunHandle<any, any>>(run: Run) => {
    await until(async () => (await run.status()) === "waiting");
    return run;
  };
  const verified = async () => expect((await pawl.verify()).differences).toEqual([]);
  const inboxOf = async (id: string) => {
    const rows = await sql.query(`SELECT kind, data FROM pawl_inbox WHERE run_id = '${id}' ORDER BY id`);
    return rows.map((row) => ({ kind: String(row.kind), data: String(row.data) }));
  };

  test("a signal wakes a run that is parked, and brings its payload", async () => {
    const run = await parked(await pawl.start(approval));
    await sql.signal(run.id, "approved", '{"by": "finance"}', { key: "webhook-9" });
    expect(await run.result()).toEqual({ payload: { by: "finance" } });
    await verified();
  });

  test("a signal wakes a run whose worker is in another process, which does not poll where it gets notifications", async () => {
    const worker = new WorkerProcess({
      url: database.url,
      ledger: join(tmpdir(), "unused"),
      workflows: ["listener"],
      lease: 60_000,
      ...(kind === "postgres" ? { poll: "never", ...database.direct } : {}),
    });
    await worker.ready;
    const id = await sql.start("listener", "{}");
    await parked(pawl.run(id));
    await sql.signal(id, "go", "1");
    await until(
      async () => (await logOf(pawl.run(id))).filter((line) => line.startsWith("wait.completed")).length === 1,
    );
    await parked(pawl.run(id));
    await sql.signal(id, "go", '"two"');
    expect(await pawl.run(id).result()).toEqual([1, "two", worker.pid]);
    expect(worker.complaints).toEqual([]);
    await worker.stop();
    await verified();
  });

  test("signals arrive in the order in which they were sent, also while a worker has the run", async () => {
    const [begun, release] = [gate(), gate()];
    const busy = workflow("busy", async (ctx) => {
      await ctx.step("wait", async () => {
        begun.open();
        await release.opened;
      });
      return [await ctx.waitForSignal("s"), await ctx.waitForSignal("s"), await ctx.waitForSignal("s")];
    });
    const worker = pawl.worker({ workflows: [busy], lease: "1 minute" });
    await worker.start();
    const run = await pawl.start(busy);
    await begun.opened;
    await sql.signal(run.id, "s", "1");
    await run.signal("s", 2);
    await sql.signal(run.id, "s", "3");
    expect(await run.status()).toBe("running");
    release.open();
    expect(await run.result()).toEqual([1, 2, 3]);
    await worker.stop();
    await verified();
  });

  test("a key counts once, from SQL and from the client", async () => {
    const run = await parked(await pawl.start(counter, 3));
    for (const options of [{ key: 'k"1\\' }, { key: 'k"1\\' }]) await sql.signal(run.id, "more", "1", options);
    await run.signal("more", 1, { key: 'k"1\\' });
    await run.signal("more", 2, { key: "k2" });
    await sql.signal(run.id, "more", "2", { key: "k2" });
    await sql.signal(run.id, "more", "3");
    expect(await run.result()).toEqual([1, 2, 3]);
    await verified();
  });

  test("20 concurrent signals with one key count once, and 20 without a key count 20 times", async () => {
    const callers = await Promise.all(Array.from({ length: 20 }, () => sqlCaller(kind, database.url)));
    const run = await parked(await pawl.start(counter, 21));
    await Promise.all(callers.map((caller) => caller.signal(run.id, "more", '"keyed"', { key: "k" })));
    await Promise.all(callers.map((caller, n) => caller.signal(run.id, "more", String(n))));
    const [first, ...others] = (await run.result()) as unknown[];
    expect(first).toBe("keyed");
    expect((others as number[]).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    await verified();
  });

  test.each([
    ["null", null],
    [null, undefined],
    ['{"$pawl": "undefined"}', { $pawl: "undefined" }],
    ['[1.5, "\\"\\\\ é \u{1f600}", {"a": [{"$pawl": {}}]}]', [1.5, '"\\ é \u{1f600}', { a: [{ $pawl: {} }] }]],
    ['{\n\t"lines" :\r\n[ ]\n}', { lines: [] }],
  ])("the payload %s arrives", async (text, payload) => {
    const run = await pawl.start(approval);
    // The run may not have waited for it yet.
    await sql.signal(run.id, "approved", text);
    expect(await run.result()).toStrictEqual({ payload });
  });

  test("the row in the inbox is the one that the client writes", async () => {
    const run = await pawl.workflow<any>("without worker").trigger(1);
    const payload = { text: 'é "x"\\', $pawl: [1] };
    const table = (kind === "postgres" ? postgresTable : mysqlTable)(() => database.url);
    const variants = [{}, { key: 'k"\\' }, { by: 'ada "l"' }, { key: "k", by: "é", reason: '"\n\u0001' }];
    for (const options of variants) {
      const { tx, commit } = await table.beginCallerTransaction();
      await run.signal('s"\\', payload, { tx, ...options });
      await commit();
      await sql.signal(run.id, 's"\\', JSON.stringify(payload), options);
    }
    const rows = await inboxOf(run.id);
    // jsonb sorts the keys of objects, so the payloads are compared as values.
    const values = rows.map(({ kind: type, data }) => {
      const message = JSON.parse(data);
      return { type, ...message, payload: JSON.parse(message.payload) };
    });
    const halfOf = <T>(all: readonly T[], half: number) => all.filter((_, index) => index % 2 === half);
    expect(halfOf(values, 1)).toEqual(halfOf(values, 0));
    if (kind === "mysql") expect(halfOf(rows, 1)).toEqual(halfOf(rows, 0));
    const [task] = await sql.query(`SELECT state, pending_messages FROM pawl_tasks WHERE run_id = '${run.id}'`);
    expect([Number(task?.state), Number(task?.pending_messages)]).toEqual([1, 8]);
    await verified();
  });

  test("who sent a signal, and why, is in the log", async () => {
    const run = await parked(await pawl.start(approval));
    await sql.signal(run.id, "approved", "1", { by: "ada", reason: "It was late." });
    await run.result();
    const accepted = (await run.history()).filter(({ type }) => type === "command.accepted");
    expect(accepted.map(({ data }) => data)).toEqual([{ command: "signal", by: "ada", reason: "It was late." }]);
  });

  describe("in the caller's transaction", () => {
    test("it is delivered when the caller commits", async () => {
      const run = await parked(await pawl.start(approval));
      await sql.query("START TRANSACTION");
      await sql.signal(run.id, "approved", "1");
      expect(await inboxOf(run.id)).toHaveLength(1);
      expect(
        await (await sqlCaller(kind, database.url)).query(`SELECT 1 FROM pawl_inbox WHERE run_id = '${run.id}'`),
      ).toEqual([]);
      await sql.query("COMMIT");
      expect(await run.result()).toEqual({ payload: 1 });
    });

    test("nothing is left when the caller rolls back", async () => {
      const run = await parked(await pawl.start(approval));
      const taskOf = () => sql.query(`SELECT * FROM pawl_tasks WHERE run_id = '${run.id}'`);
      const before = await taskOf();
      await sql.query("START TRANSACTION");
      await sql.signal(run.id, "approved", '"rolled back"', { key: "k" });
      expect(await taskOf()).not.toEqual(before);
      await sql.query("ROLLBACK");
      expect([await taskOf(), await inboxOf(run.id)]).toEqual([before, []]);
      await verified();
      await sql.signal(run.id, "approved", '"committed"', { key: "k" });
      expect(await run.result()).toEqual({ payload: "committed" });
    });

    if (kind === "mysql") {
      test("a signal that fails halfway leaves nothing", async () => {
        const run = await pawl.workflow<any>("without worker").trigger(1);
        await sql.query(`CREATE TRIGGER refuse_signal BEFORE INSERT ON pawl_inbox FOR EACH ROW
          IF NEW.data LIKE '%refused%' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'halfway'; END IF`);
        onTestFinished(async () => void (await sql.query("DROP TRIGGER refuse_signal")));
        await sql.query("START TRANSACTION");
        await sql.signal(run.id, "kept");
        expect((await refusalOf(sql.signal(run.id, "refused"))).message).toBe("halfway");
        await sql.query("COMMIT");
        expect((await refusalOf(sql.signal(run.id, "refused"))).message).toBe("halfway");
        expect((await inboxOf(run.id)).map(({ data }) => JSON.parse(data).name)).toEqual(["kept"]);
        await verified();
      });
    }

    test("a run can be started and signalled in one transaction", async () => {
      await sql.query("START TRANSACTION");
      const id = await sql.start("approval", null);
      await sql.signal(id, "approved", '"early"');
      await sql.query("COMMIT");
      expect(await pawl.run(id).result()).toEqual({ payload: "early" });
      await verified();
    });
  });

  describe("refusals", () => {
    test("a run that has ended takes no signal but one that it received before, in the words of the client", async () => {
      const run = await pawl.start(impatient);
      await parked(run);
      await sql.signal(run.id, "first", "1", { key: "one" });
      // A payload that looks like the data of a signal with a key.
      await sql.signal(run.id, "second", '{"x":"y","key":"fake","payload":1}', { key: 'two",\\' });
      await run.result();
      await until(async () => (await sql.query(`SELECT 1 FROM pawl_tasks WHERE run_id = '${run.id}'`)).length === 0);
      await sql.signal(run.id, "first", "1", { key: "one" });
      await sql.signal(run.id, "second", "1", { key: 'two",\\' });
      for (const options of [{}, { key: "fake" }, { key: "On" }, { key: "ne" }, { key: "two" }, { key: 'two"' }]) {
        const { code, message } = await errorOf(run.signal("first", 1, options));
        expect(await refusalOf(sql.signal(run.id, "first", "1", options))).toEqual(refusal(code, message));
        expect(code).toBe("INVALID_STATE");
      }
      await verified();
    });

    test("keys are found in the log also when their signals share a row with other events", async () => {
      const run = await pawl.start(impatient);
      await parked(run);
      await sql.query("START TRANSACTION");
      await sql.signal(run.id, "first", '"1"', { key: 'a"\\' });
      await sql.signal(run.id, "second", '"2"', { key: "é" });
      await sql.query("COMMIT");
      await run.result();
      const batches = await sql.query(`SELECT data FROM pawl_events WHERE run_id = '${run.id}' AND type = 'batch'`);
      expect(batches.filter(({ data }) => String(data).includes("signal.received"))).not.toEqual([]);
      await sql.signal(run.id, "first", "1", { key: 'a"\\' });
      await sql.signal(run.id, "first", "1", { key: "é" });
      expect((await refusalOf(sql.signal(run.id, "first", "1", { key: "a" }))).code).toBe("INVALID_STATE");
    });

    test("a run that waits for its time takes no signal in a transaction, and takes one when it is due", async () => {
      const run = await pawl.workflow<any>("without worker").trigger(1, { delay: "1 hour" });
      const table = (kind === "postgres" ? postgresTable : mysqlTable)(() => database.url);
      const { tx, rollback } = await table.beginCallerTransaction();
      const byClient = await errorOf(run.signal("s", 1, { tx }));
      await rollback();
      expect(await refusalOf(sql.signal(run.id, "s"))).toEqual(
        refusal(
          byClient.code,
          `${byClient.message.split(";")[0]}; send it when the run is due, or with run.signal() of the client.`,
        ),
      );
      expect(await inboxOf(run.id)).toEqual([]);
      await sql.query(`UPDATE pawl_tasks SET due_at = 5 WHERE run_id = '${run.id}'`);
      await sql.signal(run.id, "s");
      expect(await inboxOf(run.id)).toHaveLength(1);
      await verified();
    });

    test("an unknown run is refused in the words of the client", async () => {
      const id = "0190b8a0-0000-7000-8000-000000000000";
      const { code, message } = await errorOf(pawl.run(id).signal("s"));
      expect(await refusalOf(sql.signal(id, "s"))).toEqual(refusal(code, message));
      expect(await refusalOf(sql.signal(null, "s"))).toEqual(
        refusal("INVALID_INPUT", "The run is NULL; pass the id of a run, as pawl_start returns it."),
      );
    });

    test("an id in capital letters is the same run", async () => {
      const run = await pawl.start(approval);
      await sql.signal(run.id.toUpperCase(), "approved", "1");
      expect(await run.result()).toEqual({ payload: 1 });
    });

    test("bad names, keys and payloads are refused in the words of the client", async () => {
      const run = await pawl.workflow<any>("without worker").trigger(1);
      const large = "x".repeat(1024 * 1024);
      for (const [name, payload, options] of [
        ["", 1, {}],
        [" s", 1, {}],
        ["s\n", 1, {}],
        ["x".repeat(201), 1, {}],
        ["s", 1, { key: "" }],
        ["s", 1, { key: 5 }],
        ["s", 1, { key: "x".repeat(201) }],
        ["s", large, {}],
      ] as const) {
        const { code, message } = await errorOf(run.signal(name, payload, options as object));
        const bySql = await refusalOf(sql.signal(run.id, name, JSON.stringify(payload), options));
        expect({ ...bySql, message: bySql.message.replace("...", "…") }).toEqual(refusal(code, message));
      }
      for (const [options, message] of [
        ['{"keys": 1}', 'pawl_signal has no option "keys"; its options are key, by, reason.'],
        ["[]", "pawl_signal takes its options as an object, not a list."],
        ['{"by": ""}', 'The name of a user "" must not be empty; choose another.'],
        ['{"reason": 5}', "A reason is a text, not a number."],
      ])
        expect(await refusalOf(sql.signal(run.id, "s", "1", options))).toEqual(
          refusal("INVALID_INPUT", message as string),
        );
      expect(await refusalOf(sql.signal(run.id, null))).toEqual(
        refusal("INVALID_INPUT", "The signal name NULL must be a string; choose another."),
      );
      expect(await inboxOf(run.id)).toEqual([]);
    });
  });
}, sqlKinds);
