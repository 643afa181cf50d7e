/**
 * A checker that never reports anything proves nothing: databases and ledgers are damaged on purpose, and it must
 * report each damage.
 */
import { connect, workflow } from "pawl";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { checkDatabase } from "./checker.js";
import type { Execution } from "./ledger.js";
import { checkLedger } from "./ledger-check.js";

describe("the checker of databases", () => {
  let database: TestDatabase;
  let sql: RawSql;
  let runIds: string[];
  let victim: string;

  beforeEach(async () => {
    database = await testDatabase("sqlite");
    const pawl = await connect(database.url);
    const steps = workflow("steps", async (ctx) => [
      await ctx.step("step_1", () => "one"),
      await ctx.step("step_2", () => "two"),
      await ctx.step("step_3", () => "three"),
    ]);
    await pawl.worker({ workflows: [steps] }).start();
    const runs = await pawl.startMany(steps, [undefined, undefined, undefined]);
    await Promise.all(runs.map((run) => run.result()));
    expect((await pawl.verify()).differences).toEqual([]);
    await pawl.close();
    runIds = runs.map(({ id }) => id);
    victim = runIds[1] as string;
    sql = await rawSql(database.url);
  });

  afterEach(async () => {
    await sql.close();
    await database.drop();
  });

  const problems = async () => (await checkDatabase(sql, { runIds })).problems;
  const newId = "00000000-0000-7000-8000-000000000000";

  /** A copy of a row under another key. */
  const copy = async (table: string, where: string, changes: Record<string, string>) => {
    const columns = (await sql.query(`PRAGMA table_info(${table})`)).map(({ name }) => String(name));
    const values = columns.map((name) => changes[name] ?? name);
    await sql.query(`INSERT INTO ${table} (${columns}) SELECT ${values} FROM ${table} WHERE ${where}`);
  };
  const stepTwo = () => `run_id = '${victim}' AND node = 'step_2'`;
  const lastSeq = () => `(SELECT max(seq + span) FROM pawl_events WHERE run_id = '${victim}')`;
  const put = (column: string, value: string) =>
    sql.query(`UPDATE pawl_runs SET ${column} = ${value} WHERE id = '${victim}'`);

  test("reports nothing for an undamaged database", async () => {
    const { problems: found, results, events } = await checkDatabase(sql, { runIds });
    expect(found).toEqual([]);
    expect(results.size).toBe(9);
    expect(events).toBe(12);
  });

  const damages: [string, () => Promise<unknown>, RegExp][] = [
    ["a missing event", () => sql.query(`DELETE FROM pawl_events WHERE ${stepTwo()}`), /after event \d+ comes/],
    [
      "a missing end of a log",
      () => sql.query(`DELETE FROM pawl_events WHERE run_id = '${victim}' AND seq > 1`),
      /its steps \["one"\]/,
    ],
    ["a missing log", () => sql.query(`DELETE FROM pawl_events WHERE run_id = '${victim}'`), /did not start once/],
    [
      "a step that is recorded twice",
      () => copy("pawl_events", stepTwo(), { seq: lastSeq() }),
      /step_2 has two results/,
    ],
    [
      "an event after the end",
      () => copy("pawl_events", stepTwo(), { seq: lastSeq(), type: "'step.started'", at: "at + 60000" }),
      /after its end/,
    ],
    [
      "two ends",
      () => copy("pawl_events", stepTwo(), { seq: lastSeq(), type: "'run.failed'", node: "NULL" }),
      /a second end/,
    ],
    [
      "a result that was changed",
      () => sql.query(`UPDATE pawl_events SET data = replace(data, 'two', 'too') WHERE ${stepTwo()}`),
      /returned .*two.*its steps .*too/,
    ],
    ["an output that was changed", () => put("output", `'["one","two"]'`), /returned \["one","two"\]/],
    ["a row that hides events", () => sql.query(`UPDATE pawl_events SET span = 2 WHERE ${stepTwo()}`), /spans 2/],
    ["a missing run", () => sql.query(`DELETE FROM pawl_runs WHERE id = '${victim}'`), /is not there/],
    ["a log without a run", () => copy("pawl_events", stepTwo(), { run_id: `'${newId}'` }), /which does not exist/],
    [
      "a run that was never started",
      () => copy("pawl_runs", `id = '${victim}'`, { id: `'${newId}'` }),
      /4 runs, not 3/,
    ],
    ["a changed end of a run", () => put("status", "'failed'"), /is failed/],
    ["a run that never ended", () => put("status", "'waiting'"), /is waiting/],
    ["a run without its end", () => put("finished_at", "NULL"), /lacks its start or its end/],
    [
      "a task that is left over",
      () =>
        sql.query(`INSERT INTO pawl_tasks (run_id, workflow, version, priority, state, deliveries, pending_messages, fresh)
          VALUES ('${victim}', 'steps', '', 0, 1, 0, 0, 0)`),
      /1 rows are left in pawl_tasks/,
    ],
    [
      "a message that is left over",
      () => sql.query(`INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ('${victim}', 'signal', '{}', 0)`),
      /1 rows are left in pawl_inbox/,
    ],
  ];

  for (const [what, damage, complaint] of damages) {
    test(`reports ${what}`, async () => {
      await damage();
      expect((await problems()).join("\n")).toMatch(complaint);
    });
  }
});

describe("the checker of ledgers", () => {
  const killed = new Set([13]);
  let position = 0;
  const execution = (step: string, pid: number, token: string, hasEnded = true): Execution => {
    position += 2;
    return { runId: "run", step, pid, token, begun: position, ended: hasEnded ? position + 1 : null };
  };
  const check = (executions: Execution[], recorded: Record<string, string>) => {
    const results = new Map(Object.entries(recorded).map(([step, token]) => [`run ${step}`, token]));
    return checkLedger(executions, results, killed);
  };

  test("reports nothing for a step that a killed process had in flight, ended or not", () => {
    const first = [execution("a", 13, "1"), execution("b", 13, "2", false), execution("b", 7, "3")];
    expect(check(first, { a: "1", b: "3" })).toEqual({ problems: [], repeats: 1 });
    const second = [execution("a", 13, "1"), execution("b", 13, "2"), execution("b", 7, "3")];
    expect(check(second, { a: "1", b: "3" })).toEqual({ problems: [], repeats: 1 });
  });

  test("reports a step that ran again although its process was not killed", () => {
    const { problems } = check([execution("a", 7, "1"), execution("a", 8, "2")], { a: "2" });
    expect(problems).toEqual(["run a: ran again although 7 was not killed in it"]);
  });

  test("reports a step that ran again although its killed process had continued with the next step", () => {
    const { problems } = check([execution("a", 13, "1"), execution("b", 13, "2"), execution("a", 7, "3")], {
      a: "3",
      b: "2",
    });
    expect(problems).toEqual(["run a: ran again although 13 was not killed in it"]);
  });

  test("reports a body that started after its step was recorded", () => {
    const { problems } = check([execution("a", 13, "1"), execution("a", 7, "2")], { a: "1" });
    expect(problems).toEqual(["run a: recorded is not the last execution"]);
  });

  test("reports a recorded step that the ledger does not have, and a step that was never recorded", () => {
    expect(check([], { a: "1" }).problems).toEqual(["run a: recorded, but never executed"]);
    expect(check([execution("a", 7, "1")], {}).problems).toEqual(["run a: recorded is not the last execution"]);
  });

  test("reports a recorded result of a body that never ended", () => {
    expect(check([execution("a", 7, "1", false)], { a: "1" }).problems).toEqual([
      "run a: what is recorded never ended",
      "run a: begun by 7, never ended",
    ]);
  });
});
