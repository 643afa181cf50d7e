/**
 * A checker that never reports anything proves nothing: records and ledgers are damaged on purpose, and it must report
 * each damage.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RawSql } from "../support/raw-sql.js";
import { judge } from "./checker.js";
import type { Entry } from "./ledger.js";
import { type LogEvent, readRecords } from "./records.js";
import { type Edit, rewriteLog, SmallWorld } from "./small-world.js";

let world: SmallWorld;

beforeAll(async () => {
  world = await SmallWorld.open();
}, 300_000);
afterAll(() => world?.remove());

interface Damage {
  /** SQL on a copy of the database; {name} is the id of the run of that workflow. */
  readonly sql?: readonly string[];
  /** The log of the run of this workflow, changed. */
  readonly log?: readonly [workflow: string, edit: Edit];
  /** The ledger, changed. */
  readonly ledger?: (entries: readonly Entry[]) => readonly Entry[];
  readonly finds: readonly [invariant: string, text: RegExp];
}

async function found({ sql: statements = [], log, ledger }: Omit<Damage, "finds">): Promise<string[]> {
  const sql: RawSql = await world.copy();
  try {
    const idOf = (_: string, name: string) => String(world.ids[name]);
    for (const statement of statements) await sql.query(statement.replaceAll(/\{(\w+)\}/g, idOf));
    if (log !== undefined) {
      const run = String(world.ids[log[0]]);
      await rewriteLog(sql, (await readRecords(sql)).logs.get(run) ?? [], run, log[1]);
    }
    // A rewritten log differs from every snapshot; snapshots have damages of their own.
    const snapshots = log === undefined ? world.snapshots : [];
    const { violations } = await judge(sql, ledger?.(world.entries) ?? world.entries, snapshots);
    return violations.map(({ invariant, text }) => `${invariant}: ${text}`);
  } finally {
    await sql.close();
  }
}

const put = (workflow: string, set: string) => `UPDATE pawl_runs SET ${set} WHERE id = '{${workflow}}'`;
const task = (id: string, due = "NULL") =>
  `INSERT INTO pawl_tasks (run_id, workflow, version, priority, state, due_at, owner, epoch, deliveries, pending_messages, fresh)
    VALUES ('${id}', 'steps', '', 0, 0, ${due}, NULL, NULL, 0, 0, 0)`;
/** A copy of rows of pawl_runs under another id. */
const copyRun = (where: string, changes: string) =>
  `INSERT INTO pawl_runs SELECT ${changes} FROM pawl_runs WHERE ${where} LIMIT 1`;
const columns = (given: Readonly<Record<string, string>>) =>
  [
    ...["id", "workflow", "version", "queue", "priority", "status", "input", "output", "error", "waiting"],
    ...["hero_type", "hero_id", "hero_key", "start_key", "tags", "parent_id", "parent_node", "parent_index"],
    ...["parent_attempt", "created_at", "started_at", "finished_at", "started_by", "schedule"],
  ]
    .map((name) => given[name] ?? name)
    .join(", ");
const eventsOf = (log: LogEvent[], type: string) => log.filter((one) => one.type === type);
const withData = (log: LogEvent[], pick: (one: LogEvent) => boolean, data: object): LogEvent[] =>
  log.map((one) => (pick(one) ? { ...one, data: { ...one.data, ...data } } : one));
const isStep = (node: string) => (one: LogEvent) => one.type === "step.completed" && one.node === node;
const command = (what: object): Entry[] => {
  const intent = {
    kind: "intent",
    id: "x",
    workflow: null,
    run: null,
    signal: null,
    key: "x",
    at: 1,
    ...what,
  } as Entry;
  return [intent, { kind: "answer", id: "x", answer: "acknowledged", run: null, error: null, at: 2 }];
};

const damages: Readonly<Record<string, Damage>> = {
  "an acknowledged run that is gone": {
    sql: ["DELETE FROM pawl_runs WHERE id = '{steps}'"],
    finds: ["I1", /is not there/],
  },
  "two runs of one start": {
    sql: ["DROP INDEX pawl_runs_start_key", copyRun("id = '{steps}'", columns({ id: "'other'" }))],
    finds: ["I1", /has 2 runs/],
  },
  "a run that no client has started": {
    sql: [copyRun("id = '{steps}'", columns({ id: "'other'", start_key: "NULL" }))],
    finds: ["I1", /No client has started it/],
  },
  "a run that a client could not find": {
    ledger: (entries) => [
      ...entries,
      { kind: "intent", id: "x", command: "pause", workflow: null, run: "r", signal: null, key: "x", at: 1 },
      { kind: "answer", id: "x", answer: "refused", run: null, error: "RUN_NOT_FOUND: …", at: 2 },
    ],
    finds: ["I1", /told that it does not exist/],
  },
  "a run that has not ended": {
    sql: [put("steps", "status = 'waiting', finished_at = NULL"), task("{steps}", "1")],
    finds: ["I2", /has not ended: waiting/],
  },
  "two results of one step": {
    log: ["steps", (log) => [...log, ...log.filter(isStep("s0"))]],
    finds: ["I3", /s0 has two results/],
  },
  "a result that no body returned": {
    log: ["steps", (log) => withData(log, isStep("s0"), { output: "tok:invented" })],
    finds: ["I4", /tok:invented of step s0 is not in the ledger/],
  },
  "a result of a body that never ended": {
    ledger: (entries) => entries.filter(({ kind }) => kind !== "end"),
    finds: ["I4", /never ended/],
  },
  "a result that belongs to another step": {
    log: ["steps", (log) => withData(log, isStep("s0"), { output: log.find(isStep("left"))?.data.output })],
    finds: ["I4", /is that of .* left/],
  },
  "code that has seen what is not recorded": {
    log: ["steps", (log) => log.filter((one) => !isStep("left")(one))],
    finds: ["I4", /has seen tok:.*, which is not recorded/],
  },
  "items that were never done": {
    ledger: (entries) => entries.filter((one) => one.kind !== "item" || one.item !== 3),
    finds: ["I4", /Items 3 of 5 were never done/],
  },
  "a body that ran again for no reason": {
    ledger: (entries) => [...entries, ...again(entries, "left", 1)],
    finds: ["I6", /Step left ran again/],
  },
  "a body that began after its step was recorded": {
    ledger: (entries) => [...entries, ...again(entries, "left", 60_000)],
    finds: ["I5", /Step left began .* after its result was recorded/],
  },
  "a step that is to run at most once and ran twice": {
    ledger: (entries) => [...entries, ...again(entries, "once", 1)],
    finds: ["I6", /no operator has said so/],
  },
  "an item that was done again for no reason": {
    ledger: (entries) => [...entries, ...entries.filter(({ kind }) => kind === "item")],
    finds: ["I6", /Item 0 was done again/],
  },
  "two completed effects of one key": {
    ledger: (entries) => entries.map((one) => (one.kind === "begin" ? { ...one, key: "the same" } : one)),
    finds: ["key", /the same has \d+ completed effects/],
  },
  "a job that completed twice": {
    sql: [copyRun("workflow = 'job:Press'", columns({ id: "'other'", parent_attempt: "2" }))],
    finds: ["key", /The job of node press completed twice/],
  },
  "a gap in a log": {
    sql: ["DELETE FROM pawl_events WHERE run_id = '{steps}' AND seq = 1"],
    finds: ["I8", /After event 0 comes event/],
  },
  "a row that holds less than it says": {
    sql: ["UPDATE pawl_events SET span = span + 1 WHERE run_id = '{steps}' AND seq = 1"],
    finds: ["I8", /spans \d+ and holds/],
  },
  "events of no run": {
    sql: ["DELETE FROM pawl_runs WHERE id = '{steps}'"],
    finds: ["I8", /which does not exist/],
  },
  "a row of a log that was lost after it had been seen": {
    sql: [
      "DELETE FROM pawl_events WHERE run_id = '{steps}' AND seq = (SELECT max(seq) FROM pawl_events WHERE run_id = '{steps}')",
    ],
    finds: ["I8", /was there at .* and is gone/],
  },
  "a row of a log that was changed": {
    sql: ["UPDATE pawl_events SET at = at + 1 WHERE run_id = '{steps}' AND seq = 1"],
    finds: ["I8", /was there at .* and has changed/],
  },
  "an end that was changed": {
    sql: [put("steps", "status = 'failed'")],
    finds: ["I9", /Its end, as it was at .*, has changed/],
  },
  "something after the end": {
    sql: [put("steps", "finished_at = created_at - 1")],
    finds: ["I9", /happened after its end/],
  },
  "a status that its end contradicts": {
    sql: [put("steps", "status = 'paused'")],
    finds: ["I9", /It is paused and finished at/],
  },
  "a second end": {
    log: ["steps", (log) => [...log, { ...(log[0] as LogEvent), type: "run.failed" }]],
    finds: ["I9", /second end/],
  },
  "a second beginning": {
    log: ["steps", (log) => [...log, ...eventsOf(log, "run.started")]],
    finds: ["I9", /started 2 times/],
  },
  "a completed run without an output": {
    sql: [put("steps", "output = NULL")],
    finds: ["I9", /has no output/],
  },
  "a signal that was received twice": {
    log: ["listener", (log) => [...log, ...eventsOf(log, "signal.received")]],
    finds: ["I10", /Signal first was received twice/],
  },
  "an acknowledged signal that a failed run has lost": {
    sql: [put("listener", "status = 'failed'"), "DELETE FROM pawl_events WHERE run_id = '{listener}'"],
    finds: ["I10", /acknowledged signal go first is lost/],
  },
  "a signal that no client has sent": {
    ledger: (entries) => entries.filter((one) => one.kind !== "intent" || one.command !== "signal"),
    finds: ["I10", /No client has sent the signal first/],
  },
  "a signal that is consumed twice": {
    log: ["listener", (log) => withData(log, ({ type }) => type === "wait.completed", { signals: [signalSeq(log)] })],
    finds: ["I10", /is consumed by/],
  },
  "a signal that is consumed before it is there": {
    log: ["listener", (log) => withData(log, ({ type }) => type === "wait.completed", { signals: [99] })],
    finds: ["I10", /consumes signal 99, which is not there/],
  },
  "signals that overtook each other": {
    log: ["listener", (log) => log.map((one) => (one.type === "signal.received" ? withKeysSwapped(one) : one))],
    finds: ["I10", /Signal second overtook first/],
  },
  "a payload that its run has not heard": {
    sql: [put("listener", `output = '{"heard":["first","another"]}'`)],
    finds: ["I10", /It heard \["first","another"\]/],
  },
  "a timer that fired early": {
    log: ["sleeper", (log) => log.map((one) => (one.type === "timer.fired" ? { ...one, at: one.at - 1_000 } : one))],
    finds: ["I11", /fired \d+ ms before its time/],
  },
  "a timer that fired twice": {
    log: ["sleeper", (log) => [...log, ...eventsOf(log, "timer.fired")]],
    finds: ["I11", /is over twice/],
  },
  "a child without its parent": {
    sql: ["UPDATE pawl_runs SET parent_id = 'nowhere' WHERE parent_id = '{family}'"],
    finds: ["I12", /Its parent nowhere does not exist/],
  },
  "a child that outlives its parent": {
    sql: ["UPDATE pawl_runs SET finished_at = NULL, status = 'waiting' WHERE parent_id = '{family}'"],
    finds: ["I12", /It is waiting although its parent/],
  },
  "a child whose output its parent tells otherwise": {
    sql: [`UPDATE pawl_runs SET output = '"another"' WHERE parent_id = '{family}' AND parent_node = 'late'`],
    finds: ["I12", /output of child .* is "another"/],
  },
  "a child that the map of its parent tells otherwise": {
    sql: ["UPDATE pawl_runs SET status = 'failed' WHERE parent_id = '{family}' AND parent_node = 'member'"],
    finds: ["I12", /Child 0 of map member is failed, and was told as completed/],
  },
  "a row of the user's that is there twice": {
    sql: ["INSERT INTO torture_rows SELECT * FROM torture_rows LIMIT 1"],
    finds: ["I13", /its rows are \["tok/],
  },
  "a row of the user's that is missing": {
    sql: ["DELETE FROM torture_rows WHERE node = 'plain_0'"],
    finds: ["I13", /its rows are \[\]/],
  },
  "a row of the user's without a step": {
    sql: ["INSERT INTO torture_rows VALUES ('{booker}', 'plain_7', 'tok:x')"],
    finds: ["I13", /have no step record/],
  },
  "a counter that was not counted": {
    sql: ["UPDATE torture_counters SET n = n - 1 WHERE id = 2"],
    finds: ["I21", /Counter 2 is 0; 1 recorded/],
  },
  "a run that waits for nothing": {
    sql: [put("steps", "status = 'pending', finished_at = NULL"), task("{steps}")],
    finds: ["I19", /names nothing that it waits for/],
  },
  "a task without a run": { sql: [task("nowhere")], finds: ["tasks", /a task without a run/] },
  "a task of a run that has ended": { sql: [task("{steps}")], finds: ["tasks", /still has a task/] },
  "an open run without a task": {
    sql: [put("steps", "status = 'waiting', finished_at = NULL")],
    finds: ["tasks", /has no task/],
  },
  "a message that is left behind": {
    sql: ["INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ('{steps}', 'signal', '{}', 1)"],
    finds: ["inbox", /a "signal" is left in its inbox/],
  },
  "a step that was not undone": {
    log: ["trip", (log) => log.filter(({ node }) => node !== "hotel#compensate")],
    finds: ["undo", /hotel was not undone/],
  },
  "a step that is recorded as undone and was not": {
    ledger: (entries) => entries.filter((one) => one.kind !== "begin" || one.step !== "car#compensate"),
    finds: ["undo", /the ledger says no/],
  },
  "a completed run that was undone": {
    sql: [put("trip", "status = 'completed', output = '{}'")],
    finds: ["undo", /It is completed, and flight was undone/],
  },
  "a cancel that was not heeded": {
    ledger: (entries) => [...entries, ...command({ command: "cancel", run: world.ids.steps })],
    finds: ["cancel", /bodies began after its cancel was acknowledged/],
  },
  "a pause that was carried out twice": {
    log: [
      "steps",
      (log) => [...log, ...[1, 2].map(() => ({ ...(log[0] as LogEvent), type: "run.paused", data: { reason: "x" } }))],
    ],
    ledger: (entries) => [...entries, ...command({ command: "pause", run: world.ids.steps })],
    finds: ["pause", /carried out 2 times/],
  },
};

/** A second execution of this step, this much later. */
const again = (entries: readonly Entry[], step: string, ms: number): Entry[] =>
  entries.flatMap((one) =>
    one.kind === "begin" && one.step === step ? [{ ...one, token: "tok:again", at: one.at + ms }] : [],
  );
const withKeysSwapped = (one: LogEvent): LogEvent => ({
  ...one,
  data: { ...one.data, key: one.data.key === "first" ? "second" : "first" },
});
const signalSeq = (log: LogEvent[]): number => Number(eventsOf(log, "signal.received")[0]?.seq);

describe("the checker of a torture campaign", () => {
  test("reports nothing for a campaign without faults", async () => {
    expect(await found({})).toEqual([]);
  });

  test.each(Object.entries(damages))("reports %s", async (_name, { finds: [invariant, text], ...damage }) => {
    const all = await found(damage);
    expect(all.filter((one) => one.startsWith(`${invariant}: `) && text.test(one))).not.toEqual([]);
  });
});
